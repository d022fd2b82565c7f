"""Which MPIs and settings `measure --against` measures."""

from pathlib import Path

import pytest

from earlybird.measure.sides import asked_mpis, sides_against

RUN = Path("/runs/before")


@pytest.mark.parametrize(
    ("stored", "mpis", "variables", "measured", "again"),
    [
        ("mpich", None, None, "mpich", True),
        ("mpich", ["mpich"], None, "mpich", True),
        (["mpich", "openmpi"], None, None, ["mpich", "openmpi"], True),
        (["mpich", "openmpi"], ["openmpi"], None, "openmpi", True),
        ("mpich", ["openmpi"], None, ["mpich", "openmpi"], False),
        ("mpich", None, ["X=1"], ["mpich", "mpich+X=1"], False),
        ("mpich+X=1", None, ["X=2"], ["mpich+X=1", "mpich+X=2"], False),
        ("mpich+X=1", None, ["X=1"], "mpich+X=1", True),
        ("mpich", ["openmpi"], ["X=1"], ["mpich", "openmpi+X=1"], False),
    ],
)
def test_what_can_be_measured_again_is_interleaved(stored, mpis, variables, measured, again):
    assert sides_against(RUN, stored, mpis, variables) == {
        "mpi": measured, "against": str(RUN) if again else None,
    }  # fmt: skip


def test_options_given_again_with_resume_name_the_same_sides():
    stored = ["mpich", "mpich+X=1"]
    assert asked_mpis(None, ["X", "X=1"], stored) == asked_mpis(["mpich"], ["X", "X=1"]) == stored
    assert asked_mpis(None, None, stored) == []
