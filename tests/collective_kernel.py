"""Launches of the kernel `collective` by itself, with a request made by a test."""

import contextlib

import numpy as np

from earlybird.data.layout import parse_layout
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour

SHORT = Rules(budget_s=0.001, min_iterations=4)
MAX_LAUNCHES = 5


def point(operation, size_bytes, root=0, **more):
    return {"mpi": "here", "operation": operation, "size_bytes": size_bytes, "root": root} | more


def launch(mpi, scratch, ranks, points, methods=("default",), forcing=None, threads=1, mean_over_ranks=False):
    scratch.mkdir(exist_ok=True)
    layout = parse_layout(f"1x1x{ranks}")
    request = Request(
        "0",
        "collective",
        points,
        layout,
        SHORT,
        None,
        120,
        60,
        methods,
        threads=threads,
        settings=forcing or {},
        mean_over_ranks=mean_over_ranks,
    )
    return MpiexecLauncher(find_flavour(mpi)).launch(request, scratch, lambda *_: None)


def late_ranks(sample):
    """[k, r] whether rank r was late when the rank of entry k came late."""
    assert sample.quantity == "delayed_completion" and sample.validated
    assert sample.extra["delayed_ranks"] == list(range(len(sample.times_s)))
    return np.array(sample.rank_times_s) > 0.9 * sample.config["delay_s"]


def launch_until(check, scratch, start):
    """Launch by `start(folder)` until `check(launched)` passes, at most five times: a rank that waits for its
    core for as long as another one is delayed is late, too."""
    scratch.mkdir(exist_ok=True)
    for number in range(1, MAX_LAUNCHES):
        with contextlib.suppress(AssertionError):
            return check(start(scratch / f"launch-{number}"))
    return check(start(scratch / f"launch-{MAX_LAUNCHES}"))
