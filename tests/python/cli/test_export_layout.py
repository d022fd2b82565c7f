"""`earlybird export` of a layout: the file of a launcher, and how to use it."""

import json

import pytest

from earlybird.data.layout import Layout

SCATTERED = Layout.from_arrays([1, 0, 1, 0], [0, 1, 1, 0])


@pytest.fixture
def files(tmp_path):
    SCATTERED.save(tmp_path / "layout.csv")
    return tmp_path / "layout.csv", tmp_path / "out"


def test_export_writes_the_file_and_how_to_use_it(files, run_main):
    layout, out = files
    status, printed, notes = run_main(
        "export", layout, "--to", "slurm", "--hosts", "a,b", "-o", out, "--json"
    )
    assert status == 0 and "bind ranks to their sockets" in notes
    assert json.loads(printed)["use"] == f"SLURM_HOSTFILE={out} srun -n 4 --distribution=arbitrary PROGRAM"
    assert out.read_text() == "b\na\nb\na\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--to", "mpich"], "has 2 nodes, but --hosts is missing"),
        (["--to", "rank-order", "--hosts", "a"], "needs no --hosts"),
        (["--to", "slurm", "--hosts", "a,b", "--combined"], "--combined is about messages, which --to slurm"),
        (["--to", "goal", "--hosts", "a"], "omit it with --to goal"),
    ],
)
def test_options_without_meaning_are_refused(files, run_main, arguments, expected):
    layout, out = files
    status, _, notes = run_main("export", layout, *arguments, "-o", out)
    assert status == 2 and expected in notes and not out.exists()
