# Everything here needs Python 3.10 or later and make; the rest is installed into .venv.

SHELL := /bin/sh
.SHELLFLAGS := -euc
.DEFAULT_GOAL := help

FUZZ_SECONDS ?= 60
FUZZ_EXAMPLES ?= 2000
TEST_ARGS ?=
BENCH_ARGS ?=

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.10; do \
	"$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
	&& { echo "$$python"; break; }; done)
BIN := .venv/bin
PIP := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip

.PHONY: help demo test test-real test-real-all results bench check format fuzz audit docs constraints clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.venv/made:
	@if [ -z "$(PYTHON)" ]; then \
		echo "No Python 3.10 or later with venv and ensurepip found (Debian: apt-get install python3-venv)." >&2; \
		exit 1; fi
	$(PYTHON) -m venv --clear .venv
	@touch $@

.venv/run: .venv/made pyproject.toml constraints.txt
	$(PIP) install --quiet --editable .
	@touch $@

.venv/dev: .venv/run
	$(PIP) install --quiet --editable '.[dev]'
	@touch $@

demo: .venv/run ## prune the small CUDA wheel in examples/demo, before and after
	$(BIN)/python examples/demo/demo.py

test: .venv/dev ## every test that needs no download
	$(BIN)/python -m pytest -m 'not real and not gpu' $(TEST_ARGS)

test-real: .venv/dev ## tests on wheels from PyPI, kept in $WHEELSLIM_TEST_CACHE
	$(BIN)/python tests/real/fetch.py small
	$(BIN)/python tests/real/environments.py small
	$(BIN)/python -m pytest -m 'real and not slow' $(TEST_ARGS)

test-real-all: .venv/dev ## the large wheels, too: those that are in the cache (fetch.py all: 6 GiB)
	$(BIN)/python -m pytest -m real $(TEST_ARGS)

results: .venv/dev ## measure docs/results.md again: 6 GiB of wheels, 10 GiB of environments, an hour
	$(BIN)/python tests/real/fetch.py all
	$(BIN)/python tests/real/environments.py small torch torch-2.1
	$(BIN)/python scripts/results.py

bench: .venv/dev ## time beside wheel, zip, cp, cuobjdump, cph; BENCH_ARGS=--full makes docs/performance.md
	PYTHONPATH=tests $(BIN)/python -m benchmarks.run $(BENCH_ARGS)

check: .venv/dev ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/dev ## apply the format and the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

fuzz: .venv/dev ## mutated files, then property tests, each for half of FUZZ_SECONDS
	PYTHONPATH=tests $(BIN)/python -m fuzz.run --altogether $$(( $(FUZZ_SECONDS) / 2 ))
	end=$$(( $$(date +%s) + $(FUZZ_SECONDS) / 2 )); \
	while FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) PYTHONPATH=tests $(BIN)/python -m pytest -q -p fuzz_profile \
		--hypothesis-profile=fuzz -m 'hypothesis and not real and not gpu' $(TEST_ARGS); do \
		[ $$(date +%s) -lt $$end ] || exit 0; done; exit 1

audit: .venv/dev ## ask pip-audit for known vulnerabilities of the pinned versions (needs the network)
	[ -d .venv/audit ] || $(PYTHON) -m venv .venv/audit
	.venv/audit/bin/python -m pip install --quiet pip-audit==2.10.1
	.venv/audit/bin/pip-audit --strict --requirement constraints.txt --disable-pip --no-deps

docs: .venv/dev ## build the documentation into site/
	$(PIP) install --quiet --editable '.[docs]'
	$(BIN)/mkdocs build --strict

constraints: .venv/dev ## renew the pinned versions in constraints.txt
	echo hatchling | $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --upgrade \
		--extra dev --extra docs --no-header --no-annotate pyproject.toml - > .venv/constraints
	{ echo "# Exact versions for development and CI, for every Python from 3.10 on. Renew: make constraints"; \
		cat .venv/constraints; } > constraints.txt

clean: ## remove what these commands made
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist site slim
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
