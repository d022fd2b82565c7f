"""Quantities with units: `64MiB`, `25GB/s`, `2gbit`, `1000us/MB`, `3.5GHz`; SI inside.

kB, MB, GB are decimal, KiB, MiB, GiB binary, gbit is 1e9 bit/s, a bare number is already in SI units.
"""

import functools
import math
import re
from typing import Any

from earlybird.data.errors import InputError

MAX_BYTES = 2**62  # sums of sizes must stay inside 64-bit integers
# A century. What is longer is in another unit, or no time.
MAX_S = 100 * 365.25 * 86400
# A femtosecond, of a fit: the squares of shorter times may be 0, and nothing is measured with such a clock.
MIN_S = 1e-15
MAX_BYTES_PER_S = 1e30  # times divided by larger ones would be 0 or no numbers
_MIN_LEVEL = 1e-12
# Slower than any link: times of a byte over smaller ones would overflow.
MIN_BYTES_PER_S = 1e-3
_MAX_HZ = 1e15

_TRIPLE = re.compile("x".join(["([0-9]{1,8})"] * 3))  # as many digits as native/kernels/motifs/grid.cpp reads
_WHOLE = re.compile(r"0*[0-9]{1,18}")

# Each digit has one place in it: otherwise thousands of digits take minutes.
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_MAX_CHARACTERS = 60  # of a given value in an error
_LONGEST_QUANTITY = 100  # for longer ones pint takes seconds
_BIT_RATE = re.compile(rf"^\s*({_NUMBER})\s*([kmgt]?)bit(?:/s)?\s*$", re.IGNORECASE)
_BIT_PREFIX = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}

_PLAIN = re.compile(rf"\s*({_NUMBER})\s*(\S+)\s*")
# pint evaluates expressions: of 2**9999**9999 it would compute every digit.
_ONE_NUMBER = re.compile(rf"\s*{_NUMBER}[A-Za-zµ\s/*]*")
_SIZES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SIZES |= {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}
# Common units, parsed without pint, whose import takes a fifth of the time of a small command.
EVERYDAY = {
    "byte": _SIZES,
    "second": _TIMES,
    "byte/second": {f"{size}/s": num_bytes for size, num_bytes in _SIZES.items()},
    "second/byte": {
        f"{time}/{size}": time_s / num_bytes
        for time, time_s in _TIMES.items()
        for size, num_bytes in _SIZES.items()
    },
}

_UNITS = """
nano- = 1e-9 = n-
micro- = 1e-6 = u- = µ-
milli- = 1e-3 = m-
kilo- = 1e3 = k-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
kibi- = 1024 = Ki-
mebi- = 1048576 = Mi-
gibi- = 1073741824 = Gi-
tebi- = 1099511627776 = Ti-
byte = [information] = B
bit = byte / 8
second = [time] = s = sec
minute = 60 * second = min = m
hour = 3600 * second = h
hertz = 1 / second = Hz
"""


@functools.cache
def _registry() -> Any:
    import pint  # imported late: it takes longer than most commands

    # Not pint's own units: there a bit has no dimension, so 1GHz passes for a bandwidth, an angle for a size.
    registry: Any = pint.UnitRegistry(None)
    registry.load_definitions(_UNITS.strip().splitlines())
    return registry


def number_or_none(value: Any) -> float | None:
    """Return a value of a file, if it is a finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole_number(text: str) -> int | None:
    """Return the value of a text of digits alone; None for other text and for more digits than 64 bits hold,
    for which int() takes time and memory, or which it refuses."""
    return int(text.lstrip("0") or "0") if _WHOLE.fullmatch(text) else None


def parse_triple(text: str, what: str, example: str = "4x4x2") -> tuple[int, int, int]:
    """Parse `64x32x16` -> (64, 32, 16), from 1 up; raise InputError naming `what`."""
    match = _TRIPLE.fullmatch(text.strip())
    sides = tuple(map(int, match.groups())) if match else (0, 0, 0)
    if min(sides) < 1:
        raise InputError(f"{what} has {shortened(text)}; give three numbers from 1 up, such as {example}")
    return sides[0], sides[1], sides[2]


def number_in(text: str) -> float:
    """Return the number in a text; raise ValueError for other text, and for digits of other scripts and with
    underscores between them, which float() accepts."""
    return float(require_plain_digits(text))


def require_plain_digits(text: str) -> str:
    """Return the text of a number; raise ValueError for characters that only Python accepts in a number."""
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text[:_MAX_CHARACTERS]!r} is not a number in ASCII")
    return text


def _parse(text: str | float, unit: str, what: str, examples: str, most: float = math.inf) -> float:
    value = _value_in(text, unit)
    named = _PLAIN.fullmatch(str(text)) if len(str(text)) <= _LONGEST_QUANTITY else None
    if value is None and named is not None and named[2][0].isalpha():
        raise InputError(
            f"{what} is {shortened(text)}, and {shortened(named[2])} is no unit of it, where upper and lower "
            f"case differ; give one such as {examples}"
        )
    if value is None or not math.isfinite(value) or value < 0:
        raise InputError(
            f"{what} is {shortened(text)}; give a number that is not negative, such as {examples}"
        )
    if value > most:
        raise InputError(f"{what} is {shortened(text)}; give at most {most:g} {unit}s, such as {examples}")
    return value


def shortened(text: object) -> str:
    """Return the text in quotes as an error shows it; for a long text, its beginning."""
    shown = str(text)
    return repr(shown) if len(shown) <= _MAX_CHARACTERS else f"{shown[:_MAX_CHARACTERS]!r}..."


def _value_in(text: str | float, unit: str) -> float | None:
    if isinstance(text, int | float):
        return float(text)
    if len(text) > _LONGEST_QUANTITY:
        return None
    try:
        return number_in(text)
    except ValueError:
        pass
    match = _PLAIN.fullmatch(text)
    if match and (factor := EVERYDAY.get(unit, {}).get(match[2])) is not None:
        return float(match[1]) * factor
    if not _ONE_NUMBER.fullmatch(text):
        return None
    try:
        return float(_registry().Quantity(text).to(unit).magnitude)
    except Exception:  # pint raises many unrelated kinds for text it cannot read
        return None


def parse_bytes(text: str | float, what: str = "the size") -> int:
    """Parse `64MiB` -> 67108864. The result is a whole, non-negative number of bytes; raise InputError naming
    `what`."""
    value = _parse(text, "byte", what, "4096, 8kB, 64KiB or 1.5MB")
    # 1.001kB is 1000.9999999999999 in floating point, and meant as 1001.
    if abs(value - round(value)) > 1e-9 * value:
        raise InputError(
            f"{what} is {shortened(text)}, which is {value:g} bytes; give a whole number of bytes"
        )
    if value > MAX_BYTES:
        raise InputError(f"{what} is {shortened(text)}; at most {MAX_BYTES} bytes are supported")
    return round(value)


def parse_bandwidth(
    text: str | float, what: str = "the bandwidth", examples: str = "25GB/s, 2gbit or 1.2e9"
) -> float:
    """Parse `25GB/s`, `2gbit` or `200mbit` -> bytes per second, above zero."""
    is_short = isinstance(text, str) and len(text) <= _LONGEST_QUANTITY
    match = _BIT_RATE.match(str(text)) if is_short else None
    if match:
        value = float(match[1]) * _BIT_PREFIX[match[2].lower()] / 8
    else:
        value = _parse(text, "byte/second", what, examples)
    if not 0 < value <= MAX_BYTES_PER_S:
        raise InputError(
            f"{what} is {shortened(text)}; give a number above zero, such as 25GB/s or 2gbit, at most "
            f"{MAX_BYTES_PER_S:g} bytes/s"
        )
    return value


def parse_delay_rate(text: str | float, what: str = "the delay rate") -> float:
    """Parse `1000us/MB` -> 1e-9 seconds per byte."""
    return _parse(text, "second/byte", what, "1000us/MB or 1e-9", MAX_S)


def parse_frequency(text: str | float, what: str = "the frequency") -> float:
    """Return the Hz of a frequency such as `3.5GHz`, above zero."""
    value = _parse(text, "hertz", what, "3.5GHz or 3.5e9", _MAX_HZ)
    if value < 1:
        raise InputError(
            f"{what} is {shortened(text)}; give a number above zero, such as 3.5GHz, at least 1 Hz"
        )
    return value


def is_plain_number(text: str) -> bool:
    """Return whether the text is a number without a unit, although a unit is required."""
    try:
        number_in(text)
    except ValueError:
        return False
    return True


def parse_duration(
    text: str | float, what: str = "the duration", examples: str = "60s, 2min or 0.5"
) -> float:
    """Parse `60s`, `2min`, `100ms` -> seconds."""
    return _parse(text, "second", what, examples, MAX_S)


def parse_fraction(text: str | float, what: str = "the fraction") -> float:
    """Parse `5%`, `5 %`, `0.05` -> 0.05; not negative, below 10."""
    given = str(text) if len(str(text)) <= _LONGEST_QUANTITY else ""
    match = re.fullmatch(r"\s*((?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:e-?[0-9]+)?)\s*(%?)\s*", given)
    value = float(match[1]) / (100 if match[2] else 1) if match else math.inf
    if not value < 10:
        raise InputError(f"{what} is {shortened(text)}; give a fraction, such as 5% or 0.05")
    return value


def parse_level(text: str | float, what: str, least: float = 0.0) -> float:
    """Parse a significance level, as `parse_fraction` does: above 0, at least `least`, below 1. A level below
    `_MIN_LEVEL` needs more launches than can be made."""
    value = parse_fraction(text, what)
    least = least or _MIN_LEVEL
    if not least <= value < 1:
        raise InputError(
            f"{what} is {str(text)[:_MAX_CHARACTERS]}; give at least {100 * least:g} % and less than 100 %"
        )
    return value


def format_bytes(size_bytes: float) -> str:
    """Format a size: 1024 -> `1 KiB`; exact powers stay whole, others get three digits."""
    if size_bytes > MAX_BYTES:  # a product of given numbers, which may be beyond floating point
        return f"{min(size_bytes, 1e300) / (1 << 40):.3g} TiB"
    for factor, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= factor:
            return f"{_three_digits(size_bytes / factor)} {name}"
    return f"{_three_digits(size_bytes)} B"


def size_argument(size_bytes: int) -> str:
    """Format a size as an option takes it: 1024 -> `1KiB`; a size that has no short exact form stays in
    bytes."""
    short = format_bytes(size_bytes).replace(" ", "")
    return short if "." not in short and parse_bytes(short, "the size") == size_bytes else str(size_bytes)


def format_seconds(time_s: float) -> str:
    """Format a time: 1.5e-6 -> `1.5 us`."""
    for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if abs(time_s) >= factor:
            return f"{_three_digits(time_s / factor)} {name}"
    return f"{_three_digits(time_s / 1e-9)} ns"


def format_bandwidth(bandwidth_bytes_per_s: float) -> str:
    """Format a bandwidth: 1.2e10 -> `12 GB/s` (decimal, as usual for bandwidths)."""
    for factor, name in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if bandwidth_bytes_per_s >= factor:
            return f"{_three_digits(bandwidth_bytes_per_s / factor)} {name}"
    return f"{_three_digits(bandwidth_bytes_per_s)} B/s"


def format_delay_rate(seconds_per_byte: float) -> str:
    """Format a rate of delay: 1e-9 -> `1000 us/MB`."""
    return f"{seconds_per_byte * 1e12:.6g} us/MB"


def _three_digits(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == round(value) and abs(value) < 1e4:
        return str(round(value))
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"
