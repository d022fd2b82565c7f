"""Programs are read from a file; changes that can be run are told apart; contradicted advice is named."""

import pytest

from bench.__main__ import run
from bench.program_advice import Program, changes_of, contradiction, read_programs
from bench.projected_changes import Check
from earlybird.data.errors import InputError
from earlybird.data.projection import (
    AGGREGATION,
    COLLECTIVE,
    LAYOUT,
    OTHER_MPI,
    ProjectedChange,
    ProjectedPhase,
    Projection,
)
from earlybird.data.schema import Estimate

PROGRAM = Program("app", "2x1x2", "4x1x1", "/tmp", ("./app",))


def change(kind, name, time_s, action=""):
    speed_up = Estimate(1.0, 0.9, 1.1)
    return ProjectedChange(kind, name, action, Estimate(time_s, time_s, time_s), speed_up, speed_up)


def phase(number, time_s, *changes):
    return ProjectedPhase(number, ("MPI_Isend",), ("main",), 1, time_s, time_s, changes=changes)


def test_changes_that_can_be_run_have_the_sum_of_their_phases():
    setting = "set EARLYBIRD_X=1"
    projection = Projection(
        "rec", 4, 10.0, "2x1x2",
        phases=(
            phase(1, 4.0, change(LAYOUT, "4x1x1", 3.0), change(AGGREGATION, "8 to 4 messages", 1.0)),
            phase(2, 4.0, change(LAYOUT, "4x1x1", 3.0), change(OTHER_MPI, "other.json", 2.0)),
            phase(3, 1.0, change(COLLECTIVE, "tree", 0.5, setting), change(COLLECTIVE, "flat", 0.5)),
            phase(4, 1.0, change(COLLECTIVE, "ring", 0.5, setting)),
        ),
    )  # fmt: skip
    found = changes_of(projection, PROGRAM, "mpich", {"other.json": "openmpi"})
    assert [(one.kind, one.layout, one.mpi, dict(one.settings)) for one in found] == [
        (LAYOUT, "4x1x1", "mpich", {}),
        (OTHER_MPI, "2x1x2", "openmpi", {}),
        (COLLECTIVE, "2x1x2", "mpich", {"EARLYBIRD_X": "1"}),
    ]
    assert [one.speed_up.value for one in found] == pytest.approx([10 / 8, 10 / 8, 10 / 9])
    assert found[2].names == {"tree", "ring"}


@pytest.mark.parametrize(
    ("projected", "measured", "is_advised", "said"),
    [
        (Estimate(1.2, 1.1, 1.3), Estimate(0.9, 0.8, 0.95), True, "advised, but slower"),
        (Estimate(1.2, 1.1, 1.3), Estimate(0.99, 0.9, 1.01), True, None),
        (Estimate(1.0, 0.9, 1.1), Estimate(1.4, 1.3, 1.5), False, "not advised, but faster"),
        (Estimate(1.3, 0.9, 1.6), Estimate(1.4, 1.3, 1.5), False, None),
        (Estimate(1.0, 0.9, 1.1), Estimate(1.04, 1.03, 1.05), False, None),
    ],
)
def test_contradicted_advice_is_named(projected, measured, is_advised, said):
    found = contradiction(Check(LAYOUT, "mpich", "app", projected, measured), is_advised)
    assert (found is None) == (said is None)
    assert said is None or said in found


def test_programs_are_read(tmp_path):
    path = tmp_path / "programs.txt"
    path.write_text("# a comment\n\napp 2x1x2 4x1x1 /tmp ./app --name 'a b'\n")
    assert read_programs(path) == [Program("app", "2x1x2", "4x1x1", "/tmp", ("./app", "--name", "a b"))]
    for text in ("app 2x1x2 4x1x1 /tmp\n", "# nothing\n", "app 'open\n"):
        path.write_text(text)
        with pytest.raises(InputError, match=str(path)):
            read_programs(path)


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--programs", "/no/such"], "/no/such"), (["--programs", "x", "--rounds", "0"], "--rounds")],
)
def test_bad_options_are_refused(capsys, options, said):
    assert run(["program-advice", *options]) == 2
    assert said in capsys.readouterr().err
