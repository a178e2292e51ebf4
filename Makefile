# Everything a developer or newcomer runs. `make` alone lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# named one by one: snakefmt passes over every folder below one that is called build
SNAKEFILES := Snakefile workflow/Snakefile $(wildcard workflow/rules/*.smk)
DEMO := $(BIN)/snakemake --cores all --configfile config/demo.yaml

.PHONY: demo tutorial bench bench-map help setup test test-deep lint format pins

help:
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): requirements.txt requirements-yardstick.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is wanted, $$($(PYTHON) --version) was found: make PYTHON=/path/to/python3.11 ..." >&2; exit 2; }
	@echo "Setting up $(VENV) with the pinned packages; some minutes the first time."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --quiet --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --quiet --no-deps --editable .
	rm -rf .yardstick
	$(BIN)/python -m pip install --quiet --quiet --no-deps --target .yardstick --requirement requirements-yardstick.txt
	$(BIN)/python -m compileall -q benchmark_eval .yardstick
	touch $@

setup: $(READY) ## make .venv with the pinned packages and the yardstick

demo: setup ## see it work: synthetic data into demo/, a whole sweep of 153 models into results/
	@grep -qs '"complete": true' demo/synthetic.json \
	  || $(BIN)/benchmark-eval synth --output-dir demo --sweep --scale 0.05 --test-scale 1 --detections-per-specimen 14
	$(DEMO) --quiet rules host
	@printf '\n%s\n%s\n' "Report:    results/aggregated/report.md (plots: results/plots/)" \
	  "Run again: $(DEMO)"

tutorial: setup ## run docs/tutorial.md as it stands: from a benchmark to a report, into tutorial/
	rm -rf tutorial
	PATH="$(CURDIR)/$(BIN):$$PATH" bash -euo pipefail <(sed -n '/^```bash/,/^```/{/^```/!p;}' docs/tutorial.md)

test: setup ## run all tests
	$(BIN)/python -m pytest -n auto

test-deep: setup ## run the property tests with 10,000 examples each
	HYPOTHESIS_EXAMPLES=10000 $(BIN)/python -m pytest -n auto

.PHONY: test-slurm test-report
test-slurm: setup ## run a sweep on a real Slurm on this host (as root; installs Debian's packages)
	.ci/debian-packages slurm-wlm munge
	$(BIN)/python tests/slurm/run.py

test-report: setup ## read Snakemake's report of a sweep in a browser (installs Chromium)
	.ci/debian-packages chromium
	$(BIN)/python tests/browser/report_page.py

lint: setup ## ruff, strict types, snakefmt, snakemake --lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/snakefmt --check $(SNAKEFILES)
	$(BIN)/snakemake --lint

.bench: requirements-bench.txt $(READY)
	rm -rf .bench
	$(BIN)/python -m pip install --quiet --quiet --no-deps --target .bench --requirement requirements-bench.txt
	touch .bench

bench: .bench ## measure against the benchmark's evaluator and other scorers; writes docs/performance.md
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/sweep.py

bench-map: setup ## time the mAP tool on 500,000 detections
	$(BIN)/python benchmarks/map_bench.py

.PHONY: docs rulegraph
docs: setup ## build the documentation into site/; a warning fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

rulegraph: setup ## draw the rules into docs/rulegraph.svg (needs graphviz)
	@command -v dot > /dev/null || { echo "no dot here: apt-get install graphviz" >&2; exit 2; }
	folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; \
	$(BIN)/benchmark-eval synth --output-dir "$$folder" --scale 0.01 > /dev/null; \
	$(BIN)/snakemake --quiet --directory "$$folder" --rulegraph dot --config benchmark_dir=benchmark \
	  predictions_dir=predictions manifest=manifest.csv \
	  | sed 's/graph\[/graph[rankdir=LR, /' | dot -Tsvg > docs/rulegraph.svg

.PHONY: bench-scaling
bench-scaling: setup ## measure how a sweep grows with its models; writes docs/scaling.md
	$(BIN)/python benchmarks/scaling.py

format: setup ## let ruff and snakefmt rewrite the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt $(SNAKEFILES)

pins: setup ## renew requirements.txt from pyproject.toml
	CUSTOM_COMPILE_COMMAND="make pins" $(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --no-header --no-annotate --extra cluster --extra dev --extra docs --output-file requirements.txt pyproject.toml
