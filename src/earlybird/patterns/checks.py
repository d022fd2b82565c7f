"""Limits that every generator of patterns keeps, refused in one sentence."""

from earlybird.data.errors import InputError
from earlybird.data.layout import MAX_RANKS
from earlybird.data.pattern import BYTES_PER_MESSAGE, MAX_MESSAGES
from earlybird.data.units import MAX_BYTES, format_bytes


def require_range(value: int, what: str, lowest: int, highest: int | None = None) -> None:
    """Refuse a `value` outside lowest..highest (no upper end for None)."""
    if value < lowest or (highest is not None and value > highest):
        allowed = f"{lowest} or more" if highest is None else f"between {lowest} and {highest}"
        raise InputError(f"{what} is {value}; give a whole number, {allowed}")


def require_ranks(num_ranks: int, what: str = "the number of ranks") -> None:
    """Refuse fewer than one rank and more than a Layout can hold."""
    require_range(num_ranks, what, 1, MAX_RANKS)


def require_other_rank(num_ranks: int) -> None:
    """Refuse a single rank for an exchange with messages."""
    if num_ranks == 1:
        raise InputError("one rank has no other rank to send to; give 2 ranks or more")


def require_messages(num_messages: int, available_bytes: int | None = None, instead: str = "") -> None:
    """Refuse more messages than fit the memory of an ordinary machine, or that of this one if it is known.

    `instead` names the argument to change where the number of messages is not an argument.
    """
    require_memory(
        num_messages, "messages", BYTES_PER_MESSAGE, available_bytes, "the pattern", most=MAX_MESSAGES,
        instead=instead,
    )  # fmt: skip


def require_memory(
    count: int,
    what: str,
    bytes_each: int,
    available_bytes: int | None,
    subject: str,
    *,
    most: int,
    instead: str = "",
) -> None:
    """Refuse more than `most` of `what`, and more than fit into `available_bytes`."""
    fitting = most if available_bytes is None else available_bytes // bytes_each
    if count <= min(most, fitting):
        return
    takes = (
        f"{subject} would have {count} {what}, which take about {format_bytes(count * bytes_each)} of memory"
    )
    if available_bytes is not None:
        takes += f", and {format_bytes(available_bytes)} are available"
    allowed = f"give at most {fitting}" if fitting < most else f"at most {most} are supported"
    if instead and fitting < most:
        allowed = f"{fitting} fit; {instead}"
    raise InputError(f"{takes}; {allowed}")


def require_total_bytes(total_bytes: int) -> None:
    """Refuse bytes that leave 64-bit integers; `total_bytes` is a Python integer, which cannot wrap."""
    if total_bytes > MAX_BYTES:
        raise InputError(f"the pattern would move {total_bytes} bytes; at most {MAX_BYTES} are supported")
