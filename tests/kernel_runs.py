"""A point of each kernel that computes, or that several threads or ranks take part in, and runs of them."""

import numpy as np

from earlybird.data.run import Run, Sample

_COMPUTING = {"threads": 2, "partitions": 2, "compute_s": 1e-3, "noise": "single", "noise_share": 0.04}
_PLACED = {"mpi": "m", "level": "inter_node", "size_bytes": 64}
CONFIGS = {
    "pingpong": _PLACED | {"competitors": 2, "buffers": "vary"},
    "pipeline": _PLACED | {"threads": 2, "partitions": 4, "gamma_s_per_byte": 1e-9, "vcis": 2},
    "partitioned": _PLACED | _COMPUTING | {"cache": "hot"},
    "msgrate": _PLACED | {"threads": 2, "window": 64, "vcis": 2},
    "collective": {"mpi": "m", "operation": "bcast", "ranks": 2, "layout": "1x1x2", "map_by": "core",
                   "size_bytes": 64, "root": 1},
    "halo3d": _COMPUTING | {"mpi": "m", "ranks": 2, "layout": "1x1x2", "scaling": "weak", "variables": 1,
                            "process_grid": "2x1x1", "cells": "8x8x8", "size_bytes": 64, "stencil": 7,
                            "periodic": "no", "buffers": "packed"},
}  # fmt: skip
_METHODS = {"msgrate": ("shared", "processes"), "collective": ("default", "own-linear"),
            "halo3d": ("funnelled", "earlybird")}  # fmt: skip


def samples_of(kernel, config, launch="0"):
    """The reference and another method at a point, with all that their figures are made of."""
    moments = {name: [[1e-3, 2e-3]] * 2 for name in ("ready_s", "returned_s", "arrived_s", "compute_s")}
    moments |= {"joined_s": [2e-3] * 2, "completed_s": [2e-3] * 2, "thread_times_s": [[1e-3, 1e-3]] * 2}
    moments |= {"split_s": [[[0.5, 0.3, 0.2]] * 2] * 2, "sent_bytes": 4096, "messages": 8}
    return [
        Sample(
            kernel, "completion", config, launch, np.ones(2), method=method, rounds=np.arange(2),
            rank_times_s=np.ones((2, 2)), oversubscribed=True, extra=moments,
        )
        for method in _METHODS.get(kernel, ("single", "earlybird"))
    ]  # fmt: skip


def write_run(path):
    """Write a run with a point of each kernel in two launches, and halo3d also with one rank."""
    run = Run.create(path, machine={"cores": 2}, command=[], seed=1)
    place = {"host": "a", "node": 0, "socket": 0}
    placement = [place | {"rank": rank, "cpus": [rank]} for rank in range(2)]
    for launch in ("0", "1"):
        run.append_launch({"id": launch, "flavour": "mpich", "placement": placement})
        for kernel, config in CONFIGS.items():
            run.append_samples(samples_of(kernel, config, launch))
        fewer = {"ranks": 1, "process_grid": "1x1x1", "cells": "4x8x8"}
        run.append_samples(samples_of("halo3d", CONFIGS["halo3d"] | fewer, launch))
    return path
