"""The documentation agrees with the repository, and the catalog finds the files it needs."""

import ast
import re
import tomllib
import xml.etree.ElementTree as ET

import jsonschema
import pytest
import yaml
from support.workflow_sweep import ROOT, Sweep

import benchmark_eval
from benchmark_eval.inputs.config import config_schema

SVG = "{http://www.w3.org/2000/svg}"


def drawn_rules():
    """The arrows of docs/rulegraph.svg, as pairs of rules."""
    groups = ET.parse(ROOT / "docs/rulegraph.svg").getroot().iter(f"{SVG}g")
    names, arrows = {}, set()
    for group in groups:
        title = group.findtext(f"{SVG}title")
        if group.get("class") == "node":
            names[title] = group.findtext(f"{SVG}text")
        elif group.get("class") == "edge":
            arrows.add(tuple(title.split("->")))
    return {(names[a], names[b]) for a, b in arrows}


@pytest.mark.workflow
def test_the_rule_graph_is_up_to_date(tmp_path):
    sweep = Sweep.make(tmp_path)
    sweep.configure(page=True)
    output = sweep.run("--rulegraph", "dot")
    names = dict(re.findall(r'^\t(\d+)\[label = "(\w+)"', output, re.M))
    arrows = re.findall(r"^\t(\d+) -> (\d+)", output, re.M)
    assert len(arrows) > 5
    assert drawn_rules() == {(names[a], names[b]) for a, b in arrows}


def test_every_page_is_in_the_navigation():
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())

    def pages(node):
        if isinstance(node, str):
            return [node]
        parts = node.values() if isinstance(node, dict) else node
        return [page for part in parts for page in pages(part)]

    named = pages(site["nav"])
    assert len(named) == len(set(named))
    written = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert written <= set(named)


def test_links_in_the_repository_are_valid():
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md")]
    dead = [
        (page.relative_to(ROOT).as_posix(), link)
        for page in pages
        for link in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert dead == []


def test_the_performance_page_has_the_text_of_the_benchmark_script():
    text = (ROOT / "docs/performance.md").read_text()
    for name in ("SWEEP_NOTES", "NO_OP_NOTES"):
        source = (ROOT / "benchmarks/sweep.py").read_text()
        (lines,) = re.findall(rf"^{name} = (\(.*?^\))", source, re.M | re.S)
        assert "\n".join(ast.literal_eval(lines)) in text


def test_the_workflow_has_the_files_that_the_catalog_needs():
    catalog = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())
    assert set(catalog) == {"usage"}
    assert set(catalog["usage"]) == {"mandatory-flags", "software-stack-deployment", "report"}
    for name in ("workflow/Snakefile", "config/README.md", "config/config.yaml", "README.md"):
        assert (ROOT / name).is_file(), name
    # the catalog shows the descriptions of the schema
    jsonschema.validate(yaml.safe_load((ROOT / "config/config.yaml").read_text()), config_schema())


def test_the_version_is_the_same_everywhere():
    """Its home is the package; the wheel reads it there."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = pyproject["project"]
    assert "version" in project["dynamic"]
    assert pyproject["tool"]["hatch"]["version"]["path"] == "benchmark_eval/__init__.py"
    snakefile = (ROOT / "workflow/Snakefile").read_text()
    (of_workflow,) = re.findall(r'^VERSION = "(.*)"$', snakefile, re.M)
    assert citation["version"] == of_workflow == benchmark_eval.__version__
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("config/*.md")]
    lines = "\n".join(page.read_text() for page in pages).splitlines()
    tags = [re.search(r'[@"]v([\d.]+)"', line)[1] for line in lines if '"v' in line or "@v" in line]
    assert len(tags) >= 2
    assert set(tags) == {benchmark_eval.__version__}
    assert citation["license"] == project["license"]


def test_memory_and_time_on_the_cluster_page_are_those_of_the_rules():
    page = (ROOT / "docs/cluster.md").read_text()
    documented = {
        rule: (int(memory.replace(",", "")), int(minutes))
        for rule, memory, minutes in re.findall(
            r"^\| `(\w+)` \| [^|]+ \| ([\d,]+) MB[^|]* \| (\d+) min[^|]* \|", page, re.M
        )
    }
    found = {}
    for path in ROOT.glob("workflow/rules/*.smk"):
        for rule, body in re.findall(r"^rule (\w+):\n((?:    .*\n|\n)+)", path.read_text(), re.M):
            memory = re.search(r"mem_mb=\D*(\d+)", body)
            minutes = re.search(r"runtime=\D*(\d+)", body)
            if memory and minutes:
                found[rule] = (int(memory[1]), int(minutes[1]))
    assert len(found) >= 5
    assert documented == found


def test_every_setting_of_the_slurm_profile_is_explained():
    profile = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    default = yaml.safe_load((ROOT / "profiles/default/config.yaml").read_text())
    page = (ROOT / "docs/cluster.md").read_text()
    own = {key: value for key, value in profile.items() if key not in default and key != "executor"}
    for key, value in own.items():
        text = str(value).lower() if isinstance(value, bool) else value
        assert f"`{key}: {text}`" in page


def test_profiles_have_no_site_specific_settings():
    text = "".join(path.read_text() for path in ROOT.glob("profiles/*/*.yaml"))
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    assert not re.search(r"account|partition|qos|/home|/scratch", code)
