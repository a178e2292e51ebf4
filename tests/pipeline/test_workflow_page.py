"""The workflow writes the page of the sweep, and takes no other file for it."""

import re

import pytest
from support.workflow_sweep import Sweep

from benchmark_eval.check.verify import verify_results

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished sweep with its page."""
    sweep = Sweep.make(tmp_path_factory.mktemp("sweep") / "s")
    sweep.configure(page=True)
    sweep.run()
    return sweep


def test_the_page_belongs_to_a_finished_sweep(done):
    page = done.folder / "results/report.html"
    text = page.read_text()
    assert str(done.folder) not in text
    links = re.findall(r'<a href="(models/[^"]*)"', text)
    assert "models/007/007_report.txt" in links
    assert done.planned() == (set(), set())
    assert verify_results(done.folder / "results").problems == []
    page.unlink()
    assert done.planned()[1] == {"page"}
    done.run()
    assert page.read_text() == text


def test_verify_finds_an_edited_page(done):
    page = done.folder / "results/report.html"
    text = page.read_text()
    page.write_text(text.replace("Bottom line</h2>", "The bottom line</h2>"))
    try:
        (problem,) = verify_results(done.folder / "results").problems
    finally:
        page.write_text(text)
    assert problem.file == str(page)
    assert problem.found.startswith("different content in line ")


def test_a_page_of_others_is_kept(done):
    page = done.folder / "results/report.html"
    text = page.read_text()
    page.write_text("<!DOCTYPE html><title>Snakemake Report</title>")
    try:
        output = done.run(ok=False)
        assert "found a file that this workflow did not write" in output
        done.configure(page=False, iou=0.6)
        done.run()
        assert page.read_text() == "<!DOCTYPE html><title>Snakemake Report</title>"
    finally:
        page.write_text(text)
        done.configure(page=True)
