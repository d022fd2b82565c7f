"""The part of libearlybird that knows no MPI, compiled and loaded for tests in Python."""

import ctypes
import subprocess
from ctypes import POINTER, byref, c_bool, c_double, c_int, c_int64, c_uint64, c_void_p
from pathlib import Path

from earlybird.toolchain.build import native_sources

SEGMENT_MAX_BYTES = 1 << 30
PLAN_RECORDS = 3
KEEP, USE_ONE, USE_BEST = range(3)
CONTROLS = CONTROL_SETUP, CONTROL_RELEASE, CONTROL_REPORT = range(3)
MAX_PROTOCOLS = 16


class Segments(ctypes.Structure):
    _fields_ = (("num", c_int), ("first_byte", POINTER(c_int64)))


class Tags(ctypes.Structure):
    _fields_ = (
        ("bits", c_int),
        ("segment_bits", c_int),
        ("order_bits", c_int),
        ("user_bits", c_int),
        ("comm_bits", c_int),
    )


class IdRange(ctypes.Structure):
    _fields_ = (("first", c_int64), ("num", c_int64), ("holders", c_int), ("owner", c_void_p))


class Ids(ctypes.Structure):
    _fields_ = (("end", c_int64), ("ranges", POINTER(IdRange)), ("num_ranges", c_int), ("capacity", c_int))


class Protocol(ctypes.Structure):
    _fields_ = (
        ("min_bytes", c_int64),
        ("latency_s", c_double),
        ("overhead_s", c_double),
        ("bandwidth_bytes_per_s", c_double),
    )


class Cost(ctypes.Structure):
    _fields_ = (("num", c_int), ("protocols", Protocol * MAX_PROTOCOLS))


class Observation(ctypes.Structure):
    _fields_ = (("after_s", c_double), ("ready_s", c_double), ("own_s", c_double))


class Trial(ctypes.Structure):
    _fields_ = (
        ("one", Observation),
        ("many", Observation),
        ("is_trying", c_bool),
        ("refused_gain", c_double),
    )


class Proposal(ctypes.Structure):
    _fields_ = (("num", c_int), ("best_s", c_double), ("one_s", c_double), ("now_s", c_double))


_TAGS = POINTER(Tags)
_IDS = POINTER(Ids)
_SEGMENTS = POINTER(Segments)
_COST = POINTER(Cost)
_SIGNATURES = {
    "eb_segments_canonical": (c_int, c_int64, _SEGMENTS),
    "eb_segments_uniform": (c_int, c_int64, c_int64, _SEGMENTS),
    "eb_segments_from_ends": (c_int, c_int, POINTER(c_int64), _SEGMENTS),
    "eb_segments_free": (None, _SEGMENTS),
    "eb_segments_equal": (c_bool, _SEGMENTS, _SEGMENTS),
    "eb_segments_find": (c_int, _SEGMENTS, c_int64),
    "eb_segments_cover": (None, _SEGMENTS, c_int64, c_int64, POINTER(c_int), POINTER(c_int)),
    "eb_tags_layout": (Tags, c_int64),
    "eb_tags_max_segments": (c_int, _TAGS),
    "eb_tags_is_canonical": (c_bool, _TAGS, c_int, c_int, c_uint64),
    "eb_tags_segment": (c_int, _TAGS, c_int, c_int),
    "eb_tags_report": (c_int, _TAGS, c_int, c_int64),
    "eb_tags_canonical_base": (c_int, _TAGS, c_int, c_int, c_uint64),
    "eb_tags_num_ids": (c_int64, _TAGS),
    "eb_tags_channel_base": (c_int, _TAGS, c_int64),
    "eb_tags_ids_needed": (c_int64, _TAGS, c_int64),
    "eb_tags_plan": (c_int, _TAGS, c_int, c_int64),
    "eb_tags_control": (c_int, _TAGS, c_int),
    "eb_ids_begin": (None, _IDS, c_int64),
    "eb_ids_end": (None, _IDS),
    "eb_ids_take": (c_int64, _IDS, c_int64, c_void_p),
    "eb_ids_owner": (c_void_p, _IDS, c_int64),
    "eb_ids_disown": (None, _IDS, c_int64),
    "eb_ids_release": (None, _IDS, c_int64),
    "eb_cost_time_s": (c_double, _COST, c_int64),
    "eb_cost_overhead_s": (c_double, _COST, c_int64),
    "eb_plan_is_due": (c_bool, c_uint64),
    "eb_plan_record": (c_int, c_uint64),
    "eb_plan_is_reported": (c_bool, c_uint64),
    "eb_plan_num_records": (c_int, c_uint64),
    "eb_plan_typical_s": (c_double, POINTER(c_double), c_int),
    "eb_plan_predict_s": (c_double, _COST, c_int, POINTER(c_double), POINTER(c_int64)),
    "eb_plan_can_gain": (c_bool, _COST, c_int64, c_int64),
    "eb_plan_choose": (
        c_int, _COST, c_int, c_int64, POINTER(c_double), c_int, POINTER(c_int64), POINTER(c_double),
    ),
    "eb_trial_begin": (None, POINTER(Trial)),
    "eb_trial_decide": (c_int, POINTER(Trial), c_uint64, c_bool, POINTER(Observation), POINTER(Proposal)),
}  # fmt: skip


def compile_core(folder: Path) -> ctypes.CDLL:
    """The shared object of segment.c, tags.c, ids.c, cost.c and plan.c, with every signature declared."""
    sources = native_sources()
    library = folder / "core.so"
    files = [sources / "partitioned" / f"{name}.c" for name in ("segment", "tags", "ids", "cost", "plan")]
    words = ["cc", "-std=c11", "-O1", "-shared", "-fPIC", f"-I{sources}", *files, "-o", library, "-lm"]
    subprocess.run(words, check=True, timeout=60)
    loaded = ctypes.CDLL(str(library))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


def _bounds(core: ctypes.CDLL, failed: int, segments: Segments) -> list[int]:
    assert failed == 0
    first_byte = segments.first_byte[: segments.num + 1]
    core.eb_segments_free(byref(segments))
    return first_byte


def canonical(core: ctypes.CDLL, total_bytes: int) -> list[int]:
    """First bytes of the canonical segments, and the total."""
    segments = Segments()
    return _bounds(core, core.eb_segments_canonical(total_bytes, byref(segments)), segments)


def uniform(core: ctypes.CDLL, total_bytes: int, step_bytes: int) -> list[int]:
    segments = Segments()
    return _bounds(core, core.eb_segments_uniform(total_bytes, step_bytes, byref(segments)), segments)


def from_ends(core: ctypes.CDLL, ends: list[int]) -> list[int]:
    segments = Segments()
    array = (c_int64 * len(ends))(*ends)
    return _bounds(core, core.eb_segments_from_ends(len(ends), array, byref(segments)), segments)


def cost_of(protocols: list[tuple[int, float, float, float]]) -> Cost:
    """Of (min_bytes, latency_s, overhead_s, bandwidth_bytes_per_s), ascending."""
    cost = Cost(num=len(protocols))
    for place, protocol in enumerate(protocols):
        cost.protocols[place] = Protocol(*protocol)
    return cost


def choose(
    core: ctypes.CDLL, cost: Cost, ready_s: list[float], partition_bytes: int, max_segments: int
) -> tuple[list[int], float]:
    """The ends in bytes that the planner chose, and the time it predicts for them."""
    num = len(ready_s)
    ends, best_s = (c_int64 * num)(), c_double()
    times = (c_double * num)(*ready_s)
    count = core.eb_plan_choose(
        byref(cost), num, partition_bytes, times, max_segments, ends, byref(best_s)
    )  # fmt: skip
    return ends[:count], best_s.value


def predict_s(core: ctypes.CDLL, cost: Cost, ready_s: list[float], num_bytes: list[int]) -> float:
    num = len(ready_s)
    return core.eb_plan_predict_s(byref(cost), num, (c_double * num)(*ready_s), (c_int64 * num)(*num_bytes))
