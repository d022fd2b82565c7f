"""The table of where the ranks were, of the answer that a recording keeps."""

from typing import Any

from earlybird.data.kept_where import KeptWhere
from earlybird.present.core.table import Table
from earlybird.present.subjects.where.answer import CANNOT_BE_SEEN, COLUMNS, MAX_AWAITED, STATES, Place

CAPTION = "Where the ranks were"


def kept_table(where: KeptWhere) -> Table:
    """Return the table of the places in which threads were, those with most ranks last, and of the ranks that
    had none any more."""
    groups: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for thread in where.value.get("threads", []):
        key = (thread.get("call") or "computes", _awaited(thread), thread.get("site", ""))
        groups.setdefault(key, []).append((thread.get("rank", 0), thread.get("since_s", 0.0)))
    seen = {thread.get("rank") for thread in where.value.get("threads", [])}
    for rank, state in where.value.get("states", {}).items():
        if int(rank) not in seen:
            groups.setdefault((STATES.get(state, CANNOT_BE_SEEN), "", ""), []).append((int(rank), 0.0))
    places = [
        Place(tuple(sorted({rank for rank, _ in members})), *key, max(since_s for _, since_s in members))
        for key, members in groups.items()
    ]
    return Table(CAPTION, COLUMNS, sorted(places, key=lambda place: (len(place.ranks), place.ranks)))


def _awaited(thread: dict[str, Any]) -> str:
    """Return the peers and tags of what a thread waited for: `rank 3, tag 5`."""
    texts = [text for each in thread.get("pending", []) if (text := _peer_and_tag(each))]
    more = len(texts) - MAX_AWAITED
    return "; ".join([*texts[:MAX_AWAITED], *([f"and {more} more"] if more > 0 else [])])


def _peer_and_tag(pending: dict[str, Any]) -> str:
    peer, tag = pending.get("peer"), pending.get("tag")
    of_peer = [f"rank {peer}"] if peer is not None else []
    return ", ".join([*of_peer, *([f"tag {tag}"] if tag is not None else [])])
