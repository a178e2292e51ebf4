"""Rendering problems: all of them, unless there are too many to read."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_eval.core.errors import unwritable
from benchmark_eval.core.problems import Problem, render_problems


def problems(n, file="a.json", kind="score", times=1):
    return [
        Problem(kind, file, "1.5", "0 to 1", f"record {k}", "score", times=times) for k in range(n)
    ]


def test_a_problem_states_place_finding_and_expectation():
    assert str(problems(1)[0]) == "a.json, record 0, score: found 1.5; expected 0 to 1"
    assert str(Problem("k", "f", "x", "y", cause="z")) == "f: found x; expected y (z)"


def test_few_problems_are_all_listed_and_the_expected_value_once():
    lines = render_problems([*problems(3), *problems(1, "b.json", kind="other")]).splitlines()
    assert lines == [
        "4 problems found",
        "  a.json, record 0, score: found 1.5; expected 0 to 1",
        "  a.json, record 1, score: found 1.5",
        "  a.json, record 2, score: found 1.5",
        "  b.json, record 0, score: found 1.5; expected 0 to 1",
    ]


def test_many_problems_of_one_cause_in_one_file_are_counted_with_places():
    lines = render_problems([*problems(25), *problems(1, kind="other")]).splitlines()
    assert len(lines) == 1 + 3 + 1 + 1
    places = ", ".join(f"record {k}" for k in range(3, 13))
    assert lines[4] == f"  a.json: 22 more: {places}, ...; 25 problems of kind 'score' in all"


def test_one_cause_in_many_files_is_printed_once():
    many = [replace(one, cause="percent") for k in range(6) for one in problems(2, f"{k}.json")]
    text = render_problems(many)
    assert text.count("(percent)") == 1
    assert text.splitlines()[-1] == (
        "  9 more: 1.json, 2.json (2), 3.json (2), 4.json (2), 5.json (2); "
        "12 problems of kind 'score' in all"
    )


def test_single_problems_of_many_files_without_known_cause_are_listed():
    many = [one for k in range(25) for one in problems(1, f"{k}.json")]
    lines = render_problems(many).splitlines()
    assert len(lines) == 1 + 20 + 1
    assert lines[-1] == (
        "  5 more: 20.json, 21.json, 22.json, 23.json, 24.json; 25 problems of kind 'score' in all"
    )


def test_one_of_several_groups_of_a_kind_does_not_print_the_total():
    many = [replace(one, cause=cause) for cause in "xy" for one in problems(5)]
    lines = render_problems(many).splitlines()
    more = "  a.json: 2 more: record 3, record 4; 5 such problems of kind 'score'"
    assert [lines[4], lines[8]] == [more, more]


def test_each_field_and_cause_is_a_group():
    one = problems(1)[0]
    lines = render_problems([one, replace(one, cause="x"), replace(one, field="bbox"), one])
    assert lines.splitlines() == [
        "4 problems found",
        f"  {one}",
        f"  {one.finding()}",
        f"  {replace(one, cause='x')}",
        f"  {replace(one, field='bbox')}",
    ]


def test_a_problem_that_stands_for_several_is_counted_as_such():
    lines = render_problems([*problems(1), *problems(1, times=1_999)]).splitlines()
    assert lines == [
        "2,000 problems found",
        f"  {problems(1)[0]}",
        "  a.json: 1,999 more: record 0; 2,000 problems of kind 'score' in all",
    ]


def test_lines_per_kind_are_limited():
    many = [replace(one, cause=f"cause {k}") for k in range(600) for one in problems(2)]
    lines = render_problems([*many, *problems(1, kind="other")]).splitlines()
    assert len(lines) == 1 + 1000 + 1 + 1
    assert lines[-2].endswith("found 1.5; expected 0 to 1")
    assert lines[-1] == "  all files: 1,200 problems of kind 'score' in all"


@given(
    st.lists(
        st.builds(
            Problem,
            kind=st.sampled_from("kl"),
            file=st.sampled_from(["a", "b"]),
            found=st.sampled_from("xy"),
            expected=st.just("w"),
            record=st.sampled_from(["", "record 1", "record 2"]),
            cause=st.sampled_from(["", "cause"]),
            times=st.sampled_from([1, 1, 1, 5]),
        )
    )
)
def test_every_problem_is_counted_once(many):
    first, *lines = render_problems(many).splitlines()
    listed = sum(": found " in line for line in lines)
    counted = sum(
        int(re.search(r"([0-9,]+) more[:;] ", line).group(1))
        for line in lines
        if re.search(" more[:;] ", line)
    )
    total = sum(problem.times for problem in many)
    assert first.startswith(f"{total:,} problem")
    assert listed + counted == total
    assert sum("(cause)" in line for line in lines) <= 2


def test_a_character_that_the_locale_cannot_encode_is_named():
    with pytest.raises(UnicodeEncodeError) as caught:
        f"{'a' * 999}K\u00e4fer".encode("ascii")
    message = str(unwritable(caught.value))
    assert "K\\xe4fer': found '\\xe4'" in message
    assert "ascii" in message
    assert "PYTHONUTF8=1" in message
    assert len(message) < 300
