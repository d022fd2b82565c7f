"""What messages of threads cost on a communicator for each thread, from measured message rates."""

import math
from dataclasses import dataclass

from earlybird.data.advice import EXTRAPOLATED, MEASURED
from earlybird.data.kernels import MSGRATE
from earlybird.data.methods import CONTEXTS, PER_THREAD, SHARED
from earlybird.data.profile import Profile
from earlybird.data.results import Result, results_from_json
from earlybird.data.schema import Estimate
from earlybird.predict.outlook import ratio_of

# Small messages cost the same within these sizes; beyond, the nearest measured size is another question.
_SAME_COST_BYTES = 1024


@dataclass(frozen=True)
class ThreadMessageCost:
    """The cost of a message of one of several threads, and the effect of separate communicators.

    Attributes
    ----------
    method : PER_THREAD or CONTEXTS.
    shared_s : seconds of a thread for each message that it sends or receives on a communicator that all
        threads share.
    speed_up : `shared_s` / the time with this method.
    basis : MEASURED at about this size, otherwise EXTRAPOLATED.
    """

    method: str
    shared_s: float
    speed_up: Estimate
    basis: str


def thread_message_costs(
    profile: Profile, level: str, threads: int, size_bytes: float
) -> list[ThreadMessageCost]:
    """Return the costs for each method that `measure msgrate` compared with a shared communicator at this
    level with as many threads; at the measured size that is nearest to `size_bytes`.

    Threads that shared cores took turns, so their rates show nothing about threads that send at once, and are
    omitted; so are rates with reused buffers.
    """
    rates = [
        one
        for one in results_from_json(profile.extra.get("results", []), "the profile")
        if one.kernel == MSGRATE.name
        and one.config.get("level") == level
        and one.config.get("threads") == threads
        and not one.oversubscribed
        and one.config.get("buffers", "vary") == "vary"
    ]
    shared = [one for one in rates if one.method == SHARED and one.config.get("vcis") is None]
    if not shared:
        return []
    nearest = min(shared, key=lambda one: abs(math.log2((1 + _size_bytes(one)) / (1 + size_bytes))))
    least, most = sorted((_size_bytes(nearest), size_bytes))
    near = most <= max(2 * least, _SAME_COST_BYTES)
    found = []
    for method in (PER_THREAD, CONTEXTS):
        for one in rates:
            if one.method == method and _point(one) == _point(nearest):
                each_s = nearest.time_s.value / one.config["window"]
                basis = MEASURED if near else EXTRAPOLATED
                found.append(ThreadMessageCost(method, each_s, _speed_up(nearest, one), basis))
                break
    return found


def _size_bytes(result: Result) -> int:
    return int(result.config["size_bytes"])


def _point(result: Result) -> tuple[int, int]:
    return _size_bytes(result), int(result.config["window"])


def _speed_up(shared: Result, one: Result) -> Estimate:
    """Return the speed-up in common rounds; launches with contexts have none with `shared` without
    contexts."""
    if one.config.get("vcis") is None and one.speed_up is not None:
        return one.speed_up
    return ratio_of(shared.time_s, one.time_s)
