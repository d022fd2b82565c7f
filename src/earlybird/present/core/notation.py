"""The one notation of intervals, ratios and shares of errors, in every output."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from earlybird.data import labels

if TYPE_CHECKING:  # numpy and msgspec would be imported for every help text
    from earlybird.data.schema import Estimate


def range_text(bounds: Sequence[float] | None, text: Callable[[float], str]) -> str:
    """Return `1.2 us .. 1.4 us`, from (low, high); "" for None."""
    return f"{text(bounds[0])} .. {text(bounds[1])}" if bounds else ""


def interval_text(estimate: "Estimate | None", text: Callable[[float], str]) -> str:
    """Return the interval of an estimate; "" if its ends read the same."""
    if estimate is None or text(estimate.low) == text(estimate.high):
        return ""
    return range_text((estimate.low, estimate.high), text)


def with_interval(estimate: "Estimate | None", text: Callable[[float], str]) -> str:
    """Return `2.40 (2.20 .. 2.60)`; "" if it is unknown."""
    if estimate is None:
        return ""
    interval = interval_text(estimate, text)
    return text(estimate.value) + (f" ({interval})" if interval else "")


def ratio_text(ratio: float) -> str:
    """Return two decimals, or two significant digits below 0.1."""
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def change_text(ratio: float) -> str:
    """Return `+2.5 %` for a ratio of 1.025."""
    return labels.signed_percent(ratio - 1)


def percent_text(error: float | None) -> str:
    """Return `2.5 %`, two significant digits from 10000 % on; "" for None."""
    if error is None:
        return ""
    return f"{100 * error:z.1f} %" if error < 100 else f"{100 * error:.2g} %"


def millions(rate_per_s: float) -> str:
    """Return `3.44` for 3440000.0 per second."""
    return f"{rate_per_s / 1e6:.2f}" if rate_per_s >= 1e6 else f"{rate_per_s / 1e6:.3g}"
