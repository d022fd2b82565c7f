"""Limits that every generator of patterns keeps, refused in one sentence."""

from earlybird.data.errors import InputError
from earlybird.data.layout import MAX_RANKS
from earlybird.data.units import MAX_BYTES

MAX_MESSAGES = 50_000_000


def require_range(value: int, what: str, lowest: int, highest: int | None = None) -> None:
    """Refuse a `value` outside lowest..highest (no upper end for None)."""
    if value < lowest or (highest is not None and value > highest):
        allowed = f"{lowest} or more" if highest is None else f"between {lowest} and {highest}"
        raise InputError(f"{what} is {value}; give a whole number, {allowed}")


def require_ranks(num_ranks: int, what: str = "the number of ranks") -> None:
    """Refuse fewer than one rank and more than a Layout can hold."""
    require_range(num_ranks, what, 1, MAX_RANKS)


def require_other_rank(num_ranks: int) -> None:
    """Refuse one rank, of an exchange with messages."""
    if num_ranks == 1:
        raise InputError("one rank has no other rank to send to; give 2 ranks or more")


def require_messages(num_messages: int) -> None:
    """Refuse more messages than fit the memory of an ordinary machine."""
    if num_messages > MAX_MESSAGES:
        raise InputError(
            f"the pattern would have {num_messages} messages; at most {MAX_MESSAGES} are supported"
        )


def require_total_bytes(total_bytes: int) -> None:
    """Refuse bytes that leave 64-bit integers; `total_bytes` is a Python integer, which cannot wrap."""
    if total_bytes > MAX_BYTES:
        raise InputError(f"the pattern would move {total_bytes} bytes; at most {MAX_BYTES} are supported")
