"""The calls kernel under mpiexec: every call is timed, and what cannot be timed is refused."""

import pytest

from earlybird.data.layout import parse_layout
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour

pytestmark = pytest.mark.mpi


def launch(mpi, tmp_path, points, layout, *, preload=True, threads=1):
    request = Request("0", "calls", points, parse_layout(layout), Rules(), preload=preload)
    return MpiexecLauncher(find_flavour(mpi), threads=threads).launch(request, tmp_path, lambda *_: None)


def test_every_call_is_timed(mpi, tmp_path):
    few = {"mpi": "here", "iterations": 10}
    alone = [
        few | {"call": "test_null", "count": 1000},
        few | {"call": "testall", "count": 100, "requests": 5, "live": 3},
        few | {"call": "pready", "partitions": 64, "workers": 1},
        few | {"call": "pready", "partitions": 64, "workers": 2},
    ]
    pair = [few | {"call": "segments", "partitions": 16, "workers": workers} for workers in (1, 2)]
    for points, layout in ((alone, "1x1x1"), (pair, "1x1x2")):
        launched = launch(mpi, tmp_path, points, layout, threads=2)
        assert launched.cause is None
        assert [sample.config for sample in launched.samples] == points
        for sample in launched.samples:
            assert len(sample.times_s) == 10 and (sample.times_s > 0).all()


@pytest.mark.parametrize(
    ("point", "preload", "expected"),
    [
        ({"call": "pready", "partitions": 8, "workers": 1}, False, "not loaded"),
        ({"call": "pready", "partitions": 8, "workers": 2}, True, "workers=2"),
        ({"call": "segments", "partitions": 8, "workers": 1}, True, "exactly 2 ranks"),
        ({"call": "pigeon"}, True, "no call pigeon"),
    ],
)
def test_what_cannot_be_measured_is_refused(any_mpi, tmp_path, point, preload, expected):
    launched = launch(any_mpi, tmp_path, [point | {"iterations": 5}], "1x1x1", preload=preload)
    assert expected in launched.cause and launched.samples == []
