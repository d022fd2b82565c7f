"""An exchange with its ranks on different numbers of nodes."""

from collections.abc import Iterable

from earlybird.data.labels import counted
from earlybird.data.layout import Layout
from earlybird.data.levels import LEVELS
from earlybird.data.node_counts import NodeCount, NodeCounts
from earlybird.data.pattern import Pattern
from earlybird.data.profile import Profile
from earlybird.data.schema import Estimate
from earlybird.predict.exchange import COMBINE, MIXED, SHARES, Predictor


def node_counts(
    pattern: Pattern,
    layouts: Iterable[Layout],
    profile: Profile,
    model: str,
    *,
    share: str = SHARES[0],
    mixed: str = MIXED[0],
    combine: str = COMBINE[0],
) -> NodeCounts:
    """Predict the exchange on each of `layouts`, which have the same ranks; arguments and errors are those of
    `predict_exchange`. Notes begin with the number of nodes.
    """
    found, notes, num_ranks = [], [], 0
    for layout in layouts:
        predictor = Predictor(pattern, layout, mixed=mixed, combine=combine)
        prediction = predictor.predict(profile, model, share=share)
        rank, num_ranks = prediction.slowest_rank, layout.num_ranks
        time_s, interval_s = float(prediction.time_s[rank]), prediction.time_interval_s
        ends = (time_s, time_s) if interval_s is None else interval_s[rank].tolist()
        found.append(
            NodeCount(
                layout.num_nodes,
                layout.text,
                Estimate(time_s, *ends),
                float(prediction.intra_node_s[rank]),
                float(prediction.inter_node_s[rank]),
                rank,
                _level_bytes(pattern, layout),
                overlap_s=None if prediction.overlap_s is None else float(prediction.overlap_s[rank]),
            )
        )
        nodes = counted(layout.num_nodes, "node")
        notes += [f"{nodes}: {sentence}" for sentence in prediction.extra.get("notes", ())]
    return NodeCounts(model, num_ranks, tuple(found), profile.id, pattern.sha256(), tuple(notes))


def _level_bytes(pattern: Pattern, layout: Layout) -> dict[str, int]:
    level = layout.level(pattern.src, pattern.dst)
    return {name: int(pattern.bytes[level == k].sum()) for k, name in enumerate(LEVELS)}
