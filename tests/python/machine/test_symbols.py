"""Names of functions as people write them."""

import os
from pathlib import Path

import pytest

from earlybird.machine.symbols import function_names, readable_name, source_lines


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("main", "main"),
        ("mpi_send_", "mpi_send_"),
        ("_Z8CommRecvR6Domainiiiiibb", "CommRecv"),
        ("_ZN6solver3dotIdEEvRKT_", "solver::dot"),
        ("_ZN9earlybird12_GLOBAL__N_13fooEi", "earlybird::foo"),
        ("_ZNK1a1bclEi", "a::b::operator()"),
        ("_Znonsense", "_Znonsense"),
    ],
)
def test_names_of_cpp_functions_are_shown_without_types(symbol, name):
    assert readable_name(symbol) == name


def test_a_pipe_is_not_waited_for(tmp_path):
    """A recording may come from others, and names the programs whose functions are looked up."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        assert function_names(str(path), [1]) == {} and source_lines(str(path), [1]) == {}
