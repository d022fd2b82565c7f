"""Programs are read from a file; changes that can be run are told apart; contradicted advice is named."""

import pytest

from bench.__main__ import run
from bench.program_advice import Program, changes_of, contradiction, read_programs
from bench.program_checks import Check
from earlybird.data.advice import Advice, Alternative
from earlybird.data.errors import InputError
from earlybird.data.schema import Estimate
from earlybird.record.program_changes import COLLECTIVE, EVEN_WORK, LAYOUT, OTHER_MPI

PROGRAM = Program("app", "2x1x2", "4x1x1", "/tmp", ("./app",))


def change(kind, name, speed_up, action=""):
    return Alternative(name, Estimate.exact(1.0), Estimate.exact(speed_up), action, extra={"kind": kind})


def test_changes_that_can_be_run_alone_are_told_apart():
    advice = Advice("program", {}, "as recorded", (
        change("", "as recorded", 1.0), change(LAYOUT, "4x1x1 by node", 1.25),
        change(OTHER_MPI, "other.json", 1.2), change(COLLECTIVE, "tree", 1.1, "set EARLYBIRD_X=1"),
        change(COLLECTIVE, "flat", 1.1), change(EVEN_WORK, "even work", 1.1),
        change(f"{LAYOUT}, {OTHER_MPI}", "4x1x1, with other.json", 1.5),
    ))  # fmt: skip
    found = changes_of(advice, PROGRAM, "mpich", {"other.json": "openmpi"})
    assert [(one.kind, one.layout, one.mpi, dict(one.settings)) for one in found] == [
        (LAYOUT, "4x1x1:node", "mpich", {}),
        (OTHER_MPI, "2x1x2", "openmpi", {}),
        (COLLECTIVE, "2x1x2", "mpich", {"EARLYBIRD_X": "1"}),
    ]
    assert [one.speed_up.value for one in found] == pytest.approx([1.25, 1.2, 1.1])


@pytest.mark.parametrize(
    ("predicted", "measured", "is_advised", "said"),
    [
        (Estimate(1.2, 1.1, 1.3), Estimate(0.9, 0.8, 0.95), True, "advised, but slower"),
        (Estimate(1.2, 1.1, 1.3), Estimate(0.99, 0.9, 1.01), True, None),
        (Estimate(1.0, 0.9, 1.1), Estimate(1.4, 1.3, 1.5), False, "not advised, but faster"),
        (Estimate(1.3, 0.9, 1.6), Estimate(1.4, 1.3, 1.5), False, None),
        (Estimate(1.0, 0.9, 1.1), Estimate(1.04, 1.03, 1.05), False, None),
    ],
)
def test_contradicted_advice_is_named(predicted, measured, is_advised, said):
    found = contradiction(Check(LAYOUT, "mpich", "app", predicted, measured, 0.0), is_advised)
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
