"""Parameters of other benchmarks that change what they measure: keys of the points that are imported."""

from collections.abc import Mapping
from typing import Any

# Those of the OSU Micro-Benchmarks, which print them, and in which case export can write them.
THREADS, PROCESSES, VALIDATION = "threads", "processes", "validation"
# Options of the Intel MPI Benchmarks, in the calling sequence that they repeat.
OFF_CACHE, MAP, ROOT_SHIFT, SYNC = "off_cache", "map", "root_shift", "sync"
IMB_BARRIER, WARM_UP, CONTIG_TYPE = "imb_barrier", "warm_up", "contig_type"
THREAD_LEVEL, MSG_PAUSE = "thread_level", "msg_pause"
IMB_PARAMETERS = (
    OFF_CACHE, MAP, ROOT_SHIFT, SYNC, IMB_BARRIER, WARM_UP, CONTIG_TYPE, THREAD_LEVEL, MSG_PAUSE,
)  # fmt: skip
# Settings of ReproMPI, which prints them.
PROCSYNC, RUNTIME_TYPE, CLOCK, CLOCKSYNC = "procsync", "runtime_type", "clock", "clocksync"
# All of them, which points of earlier imports and of `measure` do not have: the default of the benchmark.
PARAMETERS = (VALIDATION, *IMB_PARAMETERS, PROCSYNC, RUNTIME_TYPE, CLOCK, CLOCKSYNC)


def parameter_texts(config: Mapping[str, Any]) -> list[str]:
    """Return the parameters of a point as texts, such as `off_cache 32,64`."""
    return [f"{name} {config[name]}" for name in PARAMETERS if name in config]
