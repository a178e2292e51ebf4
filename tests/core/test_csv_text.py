"""Cells of the CSV files that this package writes."""

import numpy as np

from benchmark_eval.core.csv_text import csv_cell, csv_text


def test_each_type_of_cell_has_one_format():
    cells = [None, True, False, 3, 0.1, 1e-7, np.float64(0.30000000000000004), "", "a,b", 'a"b']
    assert csv_text(["x"] * len(cells), [cells]).splitlines()[1] == (
        ',True,False,3,0.1,1e-07,0.30000000000000004,,"a,b","a""b"'
    )


def test_a_formula_is_prefixed_with_an_apostrophe_unless_a_program_reads_it_back():
    rows = [["=1+1", "+a", "-a", "@a", -0.5]]
    assert csv_text(["a"] * 5, rows) == "a,a,a,a,a\n'=1+1,'+a,'-a,'@a,-0.5\n"
    assert csv_text(["a"] * 5, rows, escape_formulas=False) == "a,a,a,a,a\n=1+1,+a,-a,@a,-0.5\n"


def test_a_single_cell_is_formatted_as_in_a_table():
    for text in ("", "a", "=a", "a,b", 'say "x"', "two\nlines"):
        assert csv_text(["h", "i"], [[text, ""]]) == f"h,i\n{csv_cell(text)},\n"
