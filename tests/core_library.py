"""The part of libearlybird without MPI calls, compiled and loaded for tests in Python."""

import ctypes
import subprocess
from ctypes import POINTER, byref, c_bool, c_double, c_int, c_int64, c_ubyte, c_uint64, c_void_p
from pathlib import Path

from earlybird.toolchain.build import native_sources

SEGMENT_MAX_BYTES = 1 << 30
CUT_MAX_SEGMENTS, PLAN_MAX_CUTS, PLAN_FIRST_PLACES, POLICY_MAX_OBSERVED = 32, 6, 48, 10
CONTROLS = CONTROL_SETUP, CONTROL_ANSWER, CONTROL_FRAME = range(3)
MAX_PROTOCOLS = 16


class Spread(ctypes.Structure):
    _fields_ = (("num_lanes", c_int64), ("block_bytes", c_int64))


class Segments(ctypes.Structure):
    _fields_ = (("num", c_int), ("first_byte", POINTER(c_int64)), ("spread", Spread), ("path", c_int))


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
    _fields_ = (
        ("begin", c_int64),
        ("end", c_int64),
        ("ranges", POINTER(IdRange)),
        ("num_ranges", c_int),
        ("capacity", c_int),
    )


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


class Cut(ctypes.Structure):
    _fields_ = (("num", c_int), ("path", c_int), ("end_byte", c_int64 * CUT_MAX_SEGMENTS))

    def ends(self) -> list[int]:
        return self.end_byte[: self.num]


class Proposal(ctypes.Structure):
    _fields_ = (("cut", Cut), ("predicted_s", c_double))


class PlanInput(ctypes.Structure):
    _fields_ = (
        ("cost", POINTER(Cost)),
        ("ring_cost", POINTER(Cost)),
        ("direct_cost", POINTER(Cost)),
        ("num_partitions", c_int),
        ("partition_bytes", c_int64),
        ("ready_s", POINTER(c_double)),
    )


class PolicyTerms(ctypes.Structure):
    _fields_ = (
        ("is_inter_node", c_bool),
        ("is_small", c_bool),
        ("is_strict", c_bool),
        ("trusts_predictions", c_bool),
        ("further_s", c_double),
        ("spread_s", c_double),
        ("num_together", c_int),
        ("is_long", c_bool),
        ("sends_early", c_bool),
    )


class Option(ctypes.Structure):
    _fields_ = (("proposal", Proposal), ("ratio", c_double), ("num_held_up", c_int), ("retry_at", c_uint64))


class Times(ctypes.Structure):
    _fields_ = (("num", c_int), ("taken_s", c_double * POLICY_MAX_OBSERVED))


class Policy(ctypes.Structure):
    _fields_ = (
        ("terms", PolicyTerms),
        ("num", c_int),
        ("in_use", c_int),
        ("options", Option * (PLAN_MAX_CUTS + 1)),
        ("won_s", c_double),
        ("num_starts", c_uint64),
        ("excess", c_double),
        ("num_channels", c_int),
        ("has_found", c_bool),
        ("is_unseen", c_bool),
        ("former", c_int),
        ("is_awaited", c_bool),
        ("compare_at", c_uint64),
        ("is_recalled", c_bool),
        ("stage", c_int),
        ("owner", c_void_p),
        ("owned_since", c_uint64),
        ("challenger", c_int),
        ("from_start", c_uint64),
        ("trial_from", c_uint64),
        ("end", c_uint64),
        ("has_looked", c_bool),
        ("base", Times),
        ("unhindered_s", c_double),
        ("observed", Observation * POLICY_MAX_OBSERVED),
        ("is_known", c_bool * POLICY_MAX_OBSERVED),
    )


class Plan(ctypes.Structure):
    _fields_ = (
        ("cut", POINTER(Cut)),
        ("trial", POINTER(Cut)),
        ("trial_from", c_uint64),
        ("trial_end", c_uint64),
        ("feedback_from", c_uint64),
        ("feedback_end", c_uint64),
        ("next_due", c_uint64),
        ("is_check", c_bool),
    )


MODULES = (
    "segmentation/segment",
    "segmentation/cost",
    "segmentation/planner",
    "segmentation/candidates",
    "segmentation/policy",
    "tags/tags",
    "tags/ids",
)
_TAGS = POINTER(Tags)
_IDS = POINTER(Ids)
_SEGMENTS = POINTER(Segments)
_COST = POINTER(Cost)
_POLICY = POINTER(Policy)
_SIGNATURES = {
    "eb_segments_canonical": (c_int, c_int64, c_int, _SEGMENTS),
    "eb_segments_uniform": (c_int, c_int64, c_int64, _SEGMENTS),
    "eb_segments_from_ends": (c_int, c_int, POINTER(c_int64), _SEGMENTS),
    "eb_segments_free": (None, _SEGMENTS),
    "eb_segments_equal": (c_bool, _SEGMENTS, _SEGMENTS),
    "eb_segments_lane": (c_int, _SEGMENTS, c_int, c_int),
    "eb_segments_find": (c_int, _SEGMENTS, c_int64),
    "eb_segments_cover": (None, _SEGMENTS, c_int64, c_int64, POINTER(c_int), POINTER(c_int)),
    "eb_tags_layout": (Tags, c_int64),
    "eb_tags_max_segments": (c_int, _TAGS),
    "eb_tags_is_canonical": (c_bool, _TAGS, c_int, c_int, c_uint64),
    "eb_tags_segment": (c_int, _TAGS, c_int, c_int),
    "eb_tags_feedback": (c_int, _TAGS, c_int, c_int64),
    "eb_tags_canonical_base": (c_int, _TAGS, c_int, c_int, c_uint64),
    "eb_tags_num_ids": (c_int64, _TAGS),
    "eb_tags_channel_base": (c_int, _TAGS, c_int64),
    "eb_tags_ids_needed": (c_int64, _TAGS, c_int64),
    "eb_tags_segmentation": (c_int, _TAGS, c_int, c_int64),
    "eb_tags_control": (c_int, _TAGS, c_int),
    "eb_ids_begin": (None, _IDS, c_int64, c_int64),
    "eb_ids_end": (None, _IDS),
    "eb_ids_take": (c_int64, _IDS, c_int64, c_void_p),
    "eb_ids_owner": (c_void_p, _IDS, c_int64),
    "eb_ids_disown": (None, _IDS, c_int64),
    "eb_ids_release": (None, _IDS, c_int64),
    "eb_cost_time_s": (c_double, _COST, c_int64),
    "eb_cost_overhead_s": (c_double, _COST, c_int64),
    "eb_cost_core_s": (c_double, _COST, c_int64),
    "eb_cut_equal": (c_bool, POINTER(Cut), POINTER(Cut)),
    "eb_planner_typical_s": (c_double, POINTER(c_double), c_int),
    "eb_planner_predict_s": (c_double, _COST, c_int, POINTER(c_double), POINTER(c_int64)),
    "eb_planner_price_s": (c_double, POINTER(PlanInput), POINTER(Cut)),
    "eb_planner_is_short": (c_bool, c_int64),
    "eb_planner_can_gain": (c_bool, _COST, c_int64, c_int64),
    "eb_planner_gains_by_ring": (c_bool, _COST, _COST, c_int64),
    "eb_planner_least_bytes": (c_int64, _COST),
    "eb_planner_first_place": (c_int, c_int64),
    "eb_planner_first_numbers": (None, _COST, POINTER(c_ubyte)),
    "eb_planner_propose": (c_int, POINTER(PlanInput), c_int, POINTER(Proposal)),
    "eb_candidates_select": (c_int, POINTER(PlanInput), c_int, POINTER(Proposal)),
    "eb_candidates_send_early": (c_int, POINTER(PlanInput), c_int, c_double, c_int, POINTER(Proposal)),
    "eb_policy_first_message": (c_uint64, c_bool),
    "eb_policy_next_check": (c_uint64, c_uint64, c_bool),
    "eb_policy_begin": (
        None, _POLICY, POINTER(PolicyTerms), c_int, POINTER(Proposal), POINTER(Proposal), c_uint64,
    ),
    "eb_policy_recall": (None, _POLICY, POINTER(Proposal), c_double),
    "eb_policy_observe": (None, _POLICY, c_void_p, c_uint64, POINTER(Observation)),
    "eb_policy_decide": (
        None, _POLICY, c_void_p, c_uint64, c_uint64, c_bool, c_double, POINTER(Plan),
    ),
    "eb_policy_leave": (None, _POLICY, c_void_p),
    "eb_policy_meet": (None, _POLICY, c_int),
    "eb_policy_message_cut": (POINTER(Cut), _POLICY),
}  # fmt: skip


def compile_core(folder: Path) -> ctypes.CDLL:
    """The shared object of the modules without MPI calls, with every signature declared."""
    sources = native_sources()
    library = folder / "core.so"
    files = [sources / "partitioned" / f"{name}.c" for name in MODULES]
    command = [
        "cc",
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-O1",
        "-shared",
        "-fPIC",
        f"-I{sources}",
        *files,
        "-o",
        library,
        "-lm",
    ]
    subprocess.run(command, check=True, timeout=60)
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


def canonical(core: ctypes.CDLL, total_bytes: int, wanted_num: int = 1) -> list[int]:
    """First bytes of the canonical segments, and the total."""
    segments = Segments()
    return _bounds(core, core.eb_segments_canonical(total_bytes, wanted_num, byref(segments)), segments)


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


def plan_input(
    cost: Cost,
    ready_s: list[float],
    partition_bytes: int,
    ring_cost: Cost | None = None,
    direct_cost: Cost | None = None,
) -> PlanInput:
    times = (c_double * len(ready_s))(*ready_s)
    others = [None if known is None else ctypes.pointer(known) for known in (ring_cost, direct_cost)]
    return PlanInput(ctypes.pointer(cost), *others, len(ready_s), partition_bytes, times)


def propose(
    core: ctypes.CDLL, cost: Cost, ready_s: list[float], partition_bytes: int, max_segments: int
) -> list[tuple[list[int], float]]:
    """The cuts that the planner would try, as their ends in bytes, and the time it predicts for each."""
    made = (Proposal * PLAN_MAX_CUTS)()
    num = core.eb_planner_propose(byref(plan_input(cost, ready_s, partition_bytes)), max_segments, made)
    return [(one.cut.ends(), one.predicted_s) for one in made[:num]]


def select(
    core: ctypes.CDLL, cost: Cost, ready_s: list[float], partition_bytes: int
) -> list[tuple[list[int], float]]:
    """Of the cuts that `propose` returns those that are worth a trial."""
    made = (Proposal * PLAN_MAX_CUTS)()
    given = plan_input(cost, ready_s, partition_bytes)
    num = core.eb_planner_propose(byref(given), CUT_MAX_SEGMENTS, made)
    num = core.eb_candidates_select(byref(given), num, made)
    return [(one.cut.ends(), one.predicted_s) for one in made[:num]]


def send_early(
    core: ctypes.CDLL,
    cost: Cost,
    ready_s: list[float],
    partition_bytes: int,
    *,
    max_segments: int = CUT_MAX_SEGMENTS,
    further_s: float = 0.0,
    num_together: int = 1,
) -> list[int] | None:
    """The ends of the cut for a receiver that uses partitions early; None where it has one segment."""
    made = (Proposal * PLAN_MAX_CUTS)()
    given = plan_input(cost, ready_s, partition_bytes)
    num = core.eb_candidates_send_early(byref(given), max_segments, further_s, num_together, made)
    return made[0].cut.ends() if num else None


def predict_s(core: ctypes.CDLL, cost: Cost, ready_s: list[float], num_bytes: list[int]) -> float:
    num = len(ready_s)
    return core.eb_planner_predict_s(
        byref(cost), num, (c_double * num)(*ready_s), (c_int64 * num)(*num_bytes)
    )
