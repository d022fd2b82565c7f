"""Names of MPIs with settings: written and read, and the alternatives that --env gives."""

import pytest

from earlybird.data.labels import flavour
from earlybird.data.mpi_settings import alternatives, split_settings, with_settings

SETTINGS = [{}, {"X": "1"}, {"X": ""}, {"UCX_TLS": "sm,self", "Y": "a=b+c"}]


@pytest.mark.parametrize("name", ["mpich", "/opt/c++/mpicc", ""])
@pytest.mark.parametrize("settings", SETTINGS)
def test_names_are_read_as_they_were_written(name, settings):
    assert split_settings(with_settings(name, settings)) == (name, settings)


def test_a_later_setting_replaces_one_of_the_same_name():
    assert with_settings("mpich+X=1+Y=2", {"X": "3"}) == "mpich+X=3+Y=2"


@pytest.mark.parametrize(
    ("mpis", "variables", "expected"),
    [
        (["a"], ["X=1"], ["a+X=1"]),
        (["a"], ["X=1", "X=2"], ["a+X=1", "a+X=2"]),
        (["a"], ["X", "X=2"], ["a", "a+X=2"]),
        (["a"], ["X=1", "Y=2"], ["a+X=1+Y=2"]),
        (["a", "b"], ["X=1", "X=2"], ["a+X=1", "a+X=2", "b+X=1", "b+X=2"]),
        (["a"], ["X=1", "X=2", "Y=3", "Y"], ["a+X=1+Y=3", "a+X=1", "a+X=2+Y=3", "a+X=2"]),
        (["a+X=1", "a"], ["X=2"], ["a+X=2"]),
    ],
)
def test_values_of_one_name_are_alternatives_and_names_are_combined(mpis, variables, expected):
    assert alternatives(mpis, variables) == expected


def test_people_read_the_settings_after_the_mpi():
    assert flavour("mpich+X=1+Y=2") == "MPICH with X=1, Y=2"
