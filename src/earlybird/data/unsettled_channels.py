"""Which counts of messages of all ranks matter: of a thousand ranks there may be a million, and of most all
messages have been received."""

from collections.abc import Mapping

import numpy as np

from earlybird.data.recorded_page import Page

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


def unsettled_channels(pages: Mapping[int, Page]) -> dict[int, np.ndarray]:
    """Return the rows of each rank, by rank, of messages that were not all received, or of which a send is
    still open."""
    rows = {rank: page.channels() for rank, page in pages.items()}
    of_rank = [_Ends.of_page(rank, pages[rank], rows[rank]) for rank in rows]
    opened = [_Ends.of_open_sends(rank, page) for rank, page in pages.items()]
    is_kept = _Ends.joined([*of_rank, *opened]).is_unsettled() if rows else np.zeros(0, bool)
    kept, at = {}, 0
    for rank, of_one in rows.items():
        num = len(of_one)
        # Of each row first what was sent, then what was received.
        kept[rank] = of_one[is_kept[at : at + num] | is_kept[at + num : at + 2 * num]]
        at += 2 * num
    return kept


class _Ends:
    """Messages from a rank to another one on a communicator with a tag, as one of the two counts them.

    Attributes
    ----------
    pair : sender and receiver in one number.
    tag, identity : of the messages, and of their communicator, 0 if that is unknown.
    num : those that were sent, or minus those that were received.
    is_open : whether more than the number matters.
    """

    def __init__(
        self, pair: np.ndarray, tag: np.ndarray, identity: np.ndarray, num: np.ndarray, is_open: np.ndarray
    ):
        self.pair, self.tag, self.identity, self.num, self.is_open = pair, tag, identity, num, is_open

    @classmethod
    def of_page(cls, rank: int, page: Page, rows: np.ndarray) -> "_Ends":
        identity, sent, received = (
            page.communicators_of(rows["communicator"]), rows["sent"].view, rows["received"].view,
        )  # fmt: skip
        peer, own = rows["peer"].astype(np.uint32).astype(np.uint64), np.uint64(rank)
        shift = np.uint64(32)
        return cls(
            np.concatenate([own << shift | peer, peer << shift | own]),
            _twice(rows["tag"]), _twice(identity),
            np.concatenate([sent(np.int64), -received(np.int64)]),
            _twice(identity == 0),
        )  # fmt: skip

    @classmethod
    def of_open_sends(cls, rank: int, page: Page) -> "_Ends":
        rows = page.open_sends()
        peer = rows["peer"].astype(np.uint32).astype(np.uint64)
        num = len(rows)
        return cls(
            np.uint64(rank) << np.uint64(32) | peer, rows["tag"], page.communicators_of(rows["communicator"]),
            np.zeros(num, np.int64), np.ones(num, bool),
        )  # fmt: skip

    @classmethod
    def joined(cls, every: "list[_Ends]") -> "_Ends":
        names = ("pair", "tag", "identity", "num", "is_open")
        return cls(*(np.concatenate([getattr(each, name) for each in every]) for name in names))

    def is_unsettled(self) -> np.ndarray:
        """Return whether each end is of messages of which some were not received, or are open."""
        tag = self.tag.astype(np.uint32).astype(np.uint64)
        mixed = (self.pair * _MIX[0]) ^ ((self.identity ^ tag << np.uint64(17)) * _MIX[1])
        mixed ^= mixed >> np.uint64(29)
        order = np.argsort(mixed)
        mixed = mixed[order]
        begins = np.concatenate([[True], mixed[1:] != mixed[:-1]])
        first = np.flatnonzero(begins)
        if not len(order):
            return np.zeros(0, bool)
        matters = np.add.reduceat(self.num[order], first) != 0
        matters |= np.logical_or.reduceat(self.is_open[order], first)
        # Others with the same hash: then all of them are kept.
        for values in (self.pair, self.tag, self.identity):
            ordered = values[order]
            is_other = np.concatenate([[False], ordered[1:] != ordered[:-1]]) & ~begins
            matters |= np.logical_or.reduceat(is_other, first)
        result = np.zeros(len(order), bool)
        result[order] = np.repeat(matters, np.diff(np.append(first, len(order))))
        return result


def _twice(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, values])
