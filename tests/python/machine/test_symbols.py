"""Names of functions as people write them."""

import pytest

from earlybird.machine.symbols import readable_name


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
