"""The last figure of Temucin et al. 2022: a recorded program's share of communication, and what follows."""

from dataclasses import replace

import pytest

from earlybird.papers.registry import PAPERS
from earlybird.papers.temucin.application import application_rows, expected_speed_up
from earlybird.papers.temucin.throughput import throughputs
from earlybird.present.material import Material
from tests.python.papers.test_temucin_motifs import motif, runs_with
from tests.recordings import RUN_S, in_memory, ring


def rows_of(recording, *parts):
    material = Material(runs=runs_with(*parts), recordings=(recording,))
    return application_rows(material, throughputs(material))


def test_without_a_recording_the_row_says_how_to_get_one():
    (row,) = [row for row in PAPERS["temucin"].rows(Material()) if row.figure == "SNAP"]
    assert (row.here, row.paper) == ("", "a picture") and "record SNAP" in row.note


def test_a_recording_has_its_share_and_what_sweep3d_of_its_size_makes_of_it():
    recording = in_memory(4, ring(4, 3, 30_000), waiting_s=lambda rank: RUN_S / 2)
    sweep = motif("sweep3d", funnelled=1.0, earlybird=(1.0, 0.5, 0.25))
    (row,) = rows_of(recording, sweep)
    share = float(row.here.removesuffix(" % in MPI")) / 100
    assert share >= 0.5
    assert row.note.startswith("mpiexec -n 4 ./app; 12 messages of 29.3 KiB in the mean; Sweep3D of MPICH")
    assert f"2.00 times the throughput at 32 KiB: speed-up {1 / (1 - share / 2):.2f} if" in row.note
    assert rows_of(recording, motif("halo3d", funnelled=1.0, earlybird=0.5))[0].note.count(";") == 1


def test_a_share_that_is_the_schedulers_is_marked():
    recording = in_memory(2, ring(2))
    waited = {rank: replace(one, core_wait_s=RUN_S / 2) for rank, one in recording.ranks.items()}
    (row,) = rows_of(replace(recording, ranks=waited))
    assert row.note.endswith("ranks waited for a core in 50 % of the run: the share is the scheduler's")


@pytest.mark.parametrize(("share", "gain", "expected"), [(0.5, 2, 4 / 3), (1, 3, 3), (0, 9, 1), (0.5, 1, 1)])
def test_only_the_share_of_communication_becomes_faster(share, gain, expected):
    assert expected_speed_up(share, gain) == pytest.approx(expected)
