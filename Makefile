# Commands for developers and first-time users. `make` without a target lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# listed explicitly, because snakefmt skips all folders below one named build
SNAKEFILES := Snakefile workflow/Snakefile $(wildcard workflow/rules/*.smk)
DEMO := $(BIN)/snakemake --cores all --configfile config/demo.yaml

.PHONY: demo tutorial bench bench-map help setup test test-fast test-deep lint format pins

help:
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(READY): requirements.txt requirements-yardstick.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is required, found $$($(PYTHON) --version): make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }
	@echo "Creating $(VENV) with the pinned packages; this takes a few minutes the first time."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --quiet --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --quiet --no-deps --editable .
	rm -rf .yardstick
	$(BIN)/python -m pip install --quiet --quiet --no-deps --target .yardstick --requirement requirements-yardstick.txt
	$(BIN)/python -m compileall -q benchmark_eval .yardstick
	touch $@

setup: $(READY) ## create .venv with the pinned packages and the benchmark's evaluator

demo: setup ## run a sweep of 153 models on synthetic data, from demo/ into results/
	@grep -qs '"complete": true' demo/synthetic.json \
	  || $(BIN)/benchmark-eval synth --output-dir demo --sweep --scale 0.05 --test-scale 1 --detections-per-specimen 14
	$(DEMO) --quiet rules host
	@printf '\n%s\n%s\n%s\n' "Page:      results/report.html" \
	  "As text:   results/aggregated/report.md (plots: results/plots/)" \
	  "Run again: $(DEMO)"

tutorial: setup ## run the commands of docs/tutorial.md, from a benchmark to a report, in tutorial/
	rm -rf tutorial
	PATH="$(CURDIR)/$(BIN):$$PATH" bash -euo pipefail <(sed -n '/^```bash/,/^```/{/^```/!p;}' docs/tutorial.md)

test: setup ## run all tests
	$(BIN)/python -m pytest -n auto --dist worksteal --durations 20

test-fast: setup ## run the fast tests: no workflow, no comparison with other evaluators (1 minute)
	$(BIN)/python -m pytest -n auto -m "not workflow and not parity and not slow"

test-deep: setup ## run only the property tests, with 10,000 examples each
	HYPOTHESIS_EXAMPLES=10000 $(BIN)/python -m pytest -n auto

.PHONY: test-slurm test-report test-gallery test-matrix
test-matrix: setup ## test the workflow with the lowest and the newest Snakemake, on each Python installed
	$(BIN)/python tests/matrix/run.py

test-slurm: setup ## run a sweep on a real Slurm on this host (requires root; installs Debian packages)
	.ci/debian-packages slurm-wlm munge
	$(BIN)/python tests/slurm/run.py

test-report: setup ## test Snakemake's report and the page of a sweep in a browser (installs Chromium)
	.ci/debian-packages chromium
	$(BIN)/python tests/browser/report_page.py
	$(BIN)/python tests/browser/sweep_page.py

test-gallery: setup ## test the gallery of failures in a browser (installs Chromium)
	.ci/debian-packages chromium
	$(BIN)/python tests/browser/gallery_page.py

lint: setup ## run ruff, mypy, import-linter, codespell, snakefmt, snakemake --lint and zizmor
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/snakefmt --check $(SNAKEFILES)
	$(BIN)/python tests/support/workflow_lint.py
	$(BIN)/zizmor --offline --no-progress --strict-collection .github/workflows

.bench: requirements-bench.txt $(READY)
	rm -rf .bench
	$(BIN)/python -m pip install --quiet --quiet --no-deps --target .bench --requirement requirements-bench.txt
	touch .bench

bench: .bench ## compare the speed with that of the benchmark's evaluator and other tools; write docs/performance.md
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/sweep.py

bench-map: setup ## time the VOC mAP tool on 500,000 detections
	$(BIN)/python benchmarks/map_bench.py

.PHONY: docs rulegraph
docs: setup ## build the documentation into site/, treating warnings as errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

rulegraph: setup ## draw the rule graph, docs/rulegraph.svg (requires graphviz)
	@command -v dot > /dev/null || { echo "dot not found: apt-get install graphviz" >&2; exit 2; }
	folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(BIN)/benchmark-eval synth --output-dir "$$folder" --scale 0.01 > /dev/null; \
	$(BIN)/snakemake --quiet --directory "$$folder" --rulegraph dot --config benchmark_dir=benchmark \
	  predictions_dir=predictions manifest=manifest.csv \
	  | sed 's/graph\[/graph[rankdir=LR, /' | dot -Tsvg > docs/rulegraph.svg

.PHONY: architecture-graph readme-plot
architecture-graph: setup ## draw the subpackages and their imports, docs/architecture.svg
	$(BIN)/python docs/architecture_graph.py

readme-plot: demo ## draw the plot of the README from the demo's results
	$(BIN)/benchmark-eval plot --aggregated results/aggregated/aggregated.json --output-dir demo/plots \
	  --format svg --only learning_iid_AP_50_95
	cp demo/plots/learning_iid_AP_50_95.svg docs/demo_learning_curve.svg

.PHONY: page-screenshots
page-screenshots: demo ## draw the screenshots of the page from the demo's results (requires Chromium)
	$(BIN)/python docs/page_screenshots.py results/report.html

.PHONY: bench-scaling
bench-scaling: setup ## measure how a sweep scales with the number of models; write docs/scaling.md
	$(BIN)/python benchmarks/scaling.py

.PHONY: bench-statistics
bench-statistics: setup ## simulate the coverage of intervals and verdicts; write docs/statistics.md
	$(BIN)/python benchmarks/simulate_statistics.py

format: setup ## format the sources with ruff and snakefmt
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt $(SNAKEFILES)

pins: setup ## update requirements.txt from pyproject.toml
	CUSTOM_COMPILE_COMMAND="make pins" $(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --no-header --no-annotate --extra cluster --extra dev --extra docs --output-file requirements.txt pyproject.toml
