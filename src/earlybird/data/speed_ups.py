"""Speed-ups with intervals, as far as they are known: values, bounds, or nothing."""

from collections.abc import Callable

from earlybird.data.schema import Estimate
from earlybird.data.units import format_seconds

# A speed-up is unknown if its interval contains a slow-down and a speed-up of more than this, or if it
# contains 1 and its upper end is more than MAX_SPREAD times the lower one. So wide an interval beyond 1 is a
# bound.
CLEAR_SPEED_UP = 1.2
MAX_SPREAD = 3.0


def is_unknown(speed_up: Estimate) -> bool:
    """Return whether the interval of a speed-up gives no information."""
    _, low, high = speed_up
    if low > 1 or high < 1:
        return False
    return (low < 1 / CLEAR_SPEED_UP and high > CLEAR_SPEED_UP) or high > MAX_SPREAD * low


def is_bound(speed_up: Estimate) -> bool:
    """Return whether only the end of the interval of a speed-up that is nearer to 1 is known."""
    return not is_unknown(speed_up) and speed_up.high > MAX_SPREAD * speed_up.low


def has_interval(speed_up: Estimate | None) -> bool:
    """Return whether both ends of the interval of a speed-up are known."""
    return speed_up is not None and not is_unknown(speed_up) and not is_bound(speed_up)


def speed_up_text(speed_up: Estimate | None, ratio: Callable[[float], str] = "{:.2f}".format) -> str:
    """Return `1.22`, `at least 1.07` or `unknown`; `ratio` formats a number."""
    if speed_up is None or is_unknown(speed_up):  # the latter in files of earlier versions
        return "unknown"
    if not is_bound(speed_up):
        return ratio(speed_up.value)
    return f"at least {ratio(speed_up.low)}" if speed_up.low > 1 else f"at most {ratio(speed_up.high)}"


def time_text(time_s: Estimate | None, speed_up: Estimate | None) -> str:
    """Return a time in the same way: `812 ms`, `at most 890 ms` or ``."""
    if time_s is None or speed_up is None or is_unknown(speed_up):
        return ""
    if not is_bound(speed_up):
        return format_seconds(time_s.value)
    if speed_up.low > 1:
        return f"at most {format_seconds(time_s.high)}"
    return f"at least {format_seconds(time_s.low)}"
