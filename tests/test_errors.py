"""How problems are listed: all of them, unless there are too many to read."""

from benchmark_eval.errors import Problem, render_problems


def problems(n, file="a.json", kind="score", times=1):
    return [
        Problem(kind, file, "1.5", "0 to 1", f"record {k}", "score", times=times) for k in range(n)
    ]


def test_a_problem_says_where_what_and_what_is_wanted():
    assert str(problems(1)[0]) == "a.json, record 0, score: found 1.5; wanted 0 to 1"
    assert str(Problem("k", "f", "x", "y", cause="z")) == "f: found x; wanted y (z)"


def test_few_problems_are_all_listed():
    lines = render_problems([*problems(20), *problems(20, "b.json")]).splitlines()
    assert lines[0] == "40 problems found"
    assert len(lines) == 41


def test_many_of_one_kind_in_one_file_are_counted():
    lines = render_problems([*problems(25), *problems(1, kind="other")]).splitlines()
    assert len(lines) == 1 + 20 + 1 + 1
    assert lines[21] == "  a.json: 25 problems of kind 'score' in all"


def test_a_problem_that_stands_for_many_is_counted_as_many():
    lines = render_problems([*problems(1), *problems(1, times=1_999)]).splitlines()
    assert lines == [
        "2,000 problems found",
        f"  {problems(1)[0]}",
        "  a.json: 2,000 problems of kind 'score' in all",
    ]


def test_many_of_one_kind_in_many_files_are_counted():
    many = [one for k in range(600) for one in problems(2, f"{k}.json")]
    lines = render_problems([*many, *problems(1, kind="other")]).splitlines()
    assert len(lines) == 1 + 1000 + 1 + 1
    assert lines[-2].endswith("found 1.5; wanted 0 to 1")
    assert lines[-1] == "  all files: 1,200 problems of kind 'score' in all"
