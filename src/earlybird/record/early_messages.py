"""What messages in partitions cost within a node, where libearlybird need not send them as messages."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from earlybird.data import labels
from earlybird.data.kernels import PIPELINE
from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.measure_commands import LaunchOptions, measure_command
from earlybird.data.methods import EARLYBIRD, SINGLE
from earlybird.data.pipeline_form import JoinedProtocol, PipelineForm
from earlybird.data.profile import Profile
from earlybird.record.operations import EARLY, Operations

BETWEEN_NODES = "inter_node"


@dataclass(frozen=True)
class EarlyCost:
    """The cost of a message that leaves early: once, and bytes per second alone."""

    latency_s: float
    bandwidth_bytes_per_s: float


def measured_pipelines(profile: Profile, level: str, threads: int = 1) -> PipelineForm | None:
    """Return what the profile has measured of libearlybird between two ranks of a node, with the number of
    threads nearest to `threads`; None between nodes, where it sends messages."""
    if level == BETWEEN_NODES:
        return None
    forms = [form for form in profile.pipelines if (form.method, form.level) == (EARLYBIRD, level)]
    return min(
        forms,
        key=lambda form: (form.vcis is not None, abs(math.log(form.threads / max(threads, 1)))),
        default=None,
    )


def early_costs(form: PipelineForm, size_bytes: np.ndarray) -> tuple[np.ndarray, list[EarlyCost]]:
    """Return the cost of each size as an index, and the costs: tau + o, and beta of the joined model."""
    protocols: tuple[JoinedProtocol, ...] = form.parameters.protocols
    starts = np.array([one.min_bytes for one in protocols])
    index = np.maximum(np.searchsorted(starts, size_bytes, side="right") - 1, 0)
    costs = [EarlyCost(one.latency_s + one.overhead_s, one.bandwidth_bytes_per_s) for one in protocols]
    return index, costs


def path_remarks(operations: Operations, layout: Layout, profile: Profile) -> Iterator[str]:
    """Yield what the prediction holds of the paths within a node that messages in partitions may take."""
    is_early = operations.sender == EARLY
    of_level = layout.level(operations.src[is_early], operations.dst[is_early])
    for k, level in enumerate(LEVELS):
        num = int((of_level == k).sum())
        if not num or level == BETWEEN_NODES:
            continue
        what = f"{labels.counted(num, 'part')} of messages stay on a node ({labels.level(level)})"
        if measured_pipelines(profile, level) is not None:
            yield f"{what} and cost what earlybird took in the pipelines of the profile, on the path it used"
            continue
        points = {"levels": level, "methods": f"{SINGLE},{EARLYBIRD}"}
        command = measure_command(PIPELINE.name, points, LaunchOptions.of(profile))
        yield (
            f"{what} and are predicted as messages of the MPI: libearlybird may copy them through memory, "
            f"which is not in this prediction; `{command}` measures it, and fit adds it to the profile"
        )
