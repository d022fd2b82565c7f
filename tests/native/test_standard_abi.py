"""libearlybird for programs of the MPI standard's own ABI, which several MPIs share."""

import functools
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import ABI_LIBRARY, has_library, library_path
from tests.conftest import BUILT, EARLYBIRD
from tests.partitioned import ABI_CASES, STANDARD_ABI, compile_program, list_cases, run_cases

pytestmark = pytest.mark.mpi

SERVES = "earlybird: partitioned communication\n"  # the table of EARLYBIRD_STATS
# Headers differ in the number of MPI_ERRORS_RETURN: a transfer in which an error comes from the MPI.
ERROR_OF_THE_MPI = "totals_that_differ_are_an_error_of_the_receive"
CASE = "pready_out_of_order_delivers_every_partition"
OTHER = {"mpich": "intel", "intel": "mpich"}


@pytest.fixture(scope="session")
def cases_of(tmp_path_factory):
    """The program of all cases, compiled for the standard's ABI by an MPI's wrapper."""
    folder = tmp_path_factory.mktemp("standard-abi")
    # libearlybird must find what the cases put before the MPI's own calls.
    options = ("-mpi-abi", "-rdynamic")
    return functools.cache(
        lambda mpi: compile_program(find_flavour(mpi), "partitioned_cases", folder, *options)
    )


@pytest.fixture(params=STANDARD_ABI)
def abi_mpi(request) -> str:
    require(request.param)
    return request.param


def require(*mpis: str) -> None:
    for mpi in mpis:
        if mpi not in BUILT or not has_library(find_flavour(mpi)):
            pytest.skip(f"libearlybird is not built for {mpi}")


def abi_library(mpi: str) -> Path:
    return library_path(find_flavour(mpi)).with_name(ABI_LIBRARY)


def failed_with(program: Path, mpi: str, library: Path, cases: list[str]) -> dict:
    """The outcomes other than `ok` of two ranks under an MPI with a library preloaded."""
    environment = {"LD_PRELOAD": str(library)}
    outcomes = run_cases(find_flavour(mpi), 2, cases, env=environment, program=program, max_launches=2)
    assert set(outcomes) >= set(cases)
    return {name: one for name, one in outcomes.items() if one.status == "failed"}


@pytest.mark.thorough
def test_a_third_of_all_cases_holds_for_a_program_of_the_standards_abi(abi_mpi, cases_of):
    """And those of every kind of call; all of them run with the MPI's own ABI."""
    program = cases_of(abi_mpi)
    everything = [name for name in list_cases(program, find_flavour(abi_mpi)) if "2_to_the_31" not in name]
    assert len(everything) > 100
    cases = list(dict.fromkeys([*everything[::3], *ABI_CASES]))
    assert failed_with(program, abi_mpi, abi_library(abi_mpi), cases) == {}


def test_a_library_serves_another_mpi_that_has_the_standards_abi(abi_mpi, cases_of):
    require(OTHER[abi_mpi])
    cases = [*ABI_CASES, ERROR_OF_THE_MPI]
    assert failed_with(cases_of(abi_mpi), abi_mpi, abi_library(OTHER[abi_mpi]), cases) == {}


@pytest.mark.parametrize("compiled_by", STANDARD_ABI)
def test_exec_preloads_the_library_of_the_standards_abi(abi_mpi, compiled_by, cases_of, earlybird):
    require(compiled_by)
    program = cases_of(compiled_by)
    command = ["exec", "--mpi", abi_mpi, "--", "mpiexec", "-n", "2", program, CASE]
    result = earlybird(*command, env={"EARLYBIRD_STATS": "1"}, timeout=60)
    assert f"ok {CASE}" in result.stdout
    assert SERVES in result.stderr


def test_a_script_names_exec_before_the_launcher_of_such_a_program(abi_mpi, cases_of, earlybird, tmp_path):
    script = tmp_path / "job"
    launch = f"mpiexec -n 2 {cases_of(abi_mpi)} {CASE}"
    script.write_text(f"#!/bin/sh\n{launch}\n")
    script.chmod(0o755)
    result = earlybird("exec", "--mpi", abi_mpi, "--", script, check=False, timeout=60)
    assert result.returncode != 0
    assert "the MPI standard's own ABI, but libearlybird was built for" in result.stderr
    assert "write `earlybird exec` directly before its launcher" in result.stderr
    script.write_text(f"#!/bin/sh\n{EARLYBIRD} exec {launch}\n")
    result = earlybird("exec", "--mpi", abi_mpi, "--", script, env={"EARLYBIRD_STATS": "1"}, timeout=60)
    assert f"ok {CASE}" in result.stdout
    assert SERVES in result.stderr
