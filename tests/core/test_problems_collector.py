"""Collecting problems: all of them, or the first of each kind and the number of the others."""

from benchmark_eval.core.problems import Problem, Problems, render_problems
from benchmark_eval.core.safe_read import read_or_report


def test_problems_keep_their_order_and_fields():
    problems = Problems("a.csv")
    assert not problems
    problems.add("x", "1", "2", record="row 3", field="seed", cause="why")
    problems.add("y", "4", "5", file="b.csv")
    assert problems.all() == [
        Problem("x", "a.csv", "1", "2", "row 3", "seed", "why"),
        Problem("y", "b.csv", "4", "5"),
    ]
    assert len(problems) == 2


def test_problems_beyond_the_limit_of_a_kind_are_counted():
    problems = Problems("a.json", most=2)
    for row in range(5):
        problems.add("many", f"{row}", "a number", record=f"record {row}")
    problems.add("one", "x", "y")
    listed = problems.all()
    assert [(p.kind, p.times) for p in listed] == [
        ("many", 1),
        ("many", 1),
        ("one", 1),
        ("many", 3),
    ]
    assert len(problems) == 6
    assert render_problems(listed).startswith("6 problems found")


def test_extend_keeps_the_number_of_counted_problems():
    problems = Problems()
    problems.extend([Problem("x", "f", "3 more", "none", times=3)])
    assert len(problems) == 3
    assert len(problems.all()) == 1


def test_an_unreadable_file_adds_a_problem(tmp_path):
    problems = Problems()
    assert (
        read_or_report(tmp_path / "none", problems, "a table", file="none", record="row 1") is None
    )
    (problem,) = problems.all()
    assert (problem.kind, problem.file, problem.record) == ("unreadable", "none", "row 1")
    assert (problem.found, problem.expected) == ("No such file or directory", "a table")
    (tmp_path / "there").write_bytes(b"x")
    assert read_or_report(tmp_path / "there", problems) == b"x"
    assert len(problems) == 1
