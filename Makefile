# make run   installs what a run needs and runs the main job
# make test  installs everything and runs the checks, in under six minutes on two cores
# make slow  runs the tests that take long and that make test leaves out
# make fuzz  feeds damaged files to every reader for five minutes; what breaks one goes into tests/fuzz/corpus
# make lock  writes requirements.lock: the pinned packages with the hashes of their files on this platform
# make release  builds the wheel and the sdist, checks them, and tries the wheel in an empty environment and folder
# make gpu   runs the engine's tests on a GPU and stamps them, so that make test knows when kernels changed since
# make pages sets everything up and writes what is computed in the pages: tables, output, pictures
# make docs  sets everything up and builds the pages as a site
# Paths stay relative: they then work from a folder with spaces in its name.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DONE := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# The benchmark files, where a copy lies beside the checkout; the package itself knows nothing of it.
SHARED_DATA := $(shell cd ../shared/data 2>/dev/null && pwd)
ifneq ($(SHARED_DATA),)
export PROPREG_DATA ?= $(SHARED_DATA)
endif

.PHONY: run test slow fuzz lock gpu release lint types unit pages docs setup format clean
.DEFAULT_GOAL := run

run: $(READY)
	@$(BIN)/python -m propreg run

# Types are checked beside the tests: mypy alone would leave a core idle.
test: lint
	@$(MAKE) --no-print-directory -j 2 types unit

setup: $(DONE)

# pip knows dependency groups since 25.1.
$(DONE): $(READY)
	$(PIP) --upgrade pip
	$(PIP) --group dev -e '.[all]'
	@touch $(DONE)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "propreg needs Python 3.11 or later: run 'make PYTHON=python3.12 run' with the one you have."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "No virtual environment could be made: install Python's venv module (on Debian: python3-venv)."; exit 1; }
	$(PIP) -e '.[fit,cli,report]'
	@touch $(READY)

lint: setup
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/lint-imports --no-cache > .lint-imports.log || { cat .lint-imports.log; exit 1; }

# Exit status 2 is a crash of mypy, seen once in a fresh checkout: once more without its cache. Type errors are 1.
types: setup
	@$(BIN)/python -m mypy || { test $$? -eq 2 && $(BIN)/python -m mypy --cache-dir=/dev/null; }

unit: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow'

slow: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

lock: setup
	$(BIN)/python tests/lock.py

fuzz: setup
	PYTHONPATH=tests $(BIN)/python tests/fuzz/run.py

gpu: setup
	$(BIN)/python tests/engine/kernels/stamp.py

pages: setup
	$(BIN)/python docs/build.py --outputs

docs: setup
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build
	@echo "Open docs/_build/index.html in a browser."

release: setup
	$(PIP) --group release
	$(BIN)/python tests/release.py

format: setup
	$(BIN)/python -m ruff check --fix-only .
	$(BIN)/python -m ruff format .

clean:
	rm -rf $(VENV)
