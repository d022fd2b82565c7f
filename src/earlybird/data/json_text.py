"""JSON texts: within floating point, not nested without bounds, and with the current names of keys."""

import codecs
import json
import math
from collections.abc import Mapping
from typing import Any

# A JSON file of this size is decoded without copies of its text.
_LARGE_JSON_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 20
# Of JSON: records of records of lists have some 10.
_MAX_NESTED = 64
_NESTABLE = frozenset((dict, list))
_NESTED = f"it is nested more than {_MAX_NESTED} levels deep"

# Keys in the files of earlier versions, and their current names.
FORMER_KEYS = {
    "way": "method",
    "ways": "methods",
    "swift_bytes": "burst_bytes",
    "beyond_s_per_byte": "post_burst_s_per_byte",
    "gain": "speed_up",
    "gain_interval": "speed_up_interval",
    "measured_s": "measured_time_s",
    "do": "action",
    "crossovers": "size_ranges",
    "proof": "verify",
}


def with_current_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with the current names of its keys, regardless of the version that wrote it."""
    return {FORMER_KEYS.get(key, key): item for key, item in value.items()}


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text, whose numbers are within floating point and which is not nested
    without bounds.

    Raise ValueError, also for values that `json.loads` accepts and other readers do not: NaN, Infinity and
    1e999.
    """
    import msgspec  # not with this module, which every command imports

    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    try:
        try:
            value = _STRICT.decode(data.decode()) if _has_long_number(data) else msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # msgspec also refuses halves of surrogate pairs, which stand for bytes that are not UTF-8.
            value = _STRICT.decode(data.decode("utf-8", "surrogatepass"))
    except RecursionError:  # of either reader
        raise ValueError(_NESTED) from None
    return _flat(value, data)


def decode_large(data: bytearray) -> Any:
    """Return the value of a large text without copying the text, which may not fit into memory, and with
    shorter errors.

    Return None for a small text, and for a text that only `parse_json` reads.
    """
    import msgspec

    is_plain = b"\\ud" not in data and not data.startswith(codecs.BOM_UTF8) and not _has_long_number(data)
    if len(data) < _LARGE_JSON_BYTES or not is_plain:
        return None
    try:
        return _flat(msgspec.json.decode(data), data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError(_NESTED) from None


def _has_long_number(data: bytes | bytearray) -> bool:
    """Return whether the text may have a number beyond floating point; its digits are searched block by
    block."""
    return any(
        _LONG_NUMBER in data[start : start + _BLOCK_BYTES + len(_LONG_NUMBER)].translate(_DIGITS_ALIKE)
        for start in range(0, len(data), _BLOCK_BYTES)
    )


def _flat(value: Any, data: bytes | bytearray) -> Any:
    if data.count(b"[") + data.count(b"{") > _MAX_NESTED:
        _require_flat(value)
    return value


def _require_flat(value: Any) -> None:
    """Raise ValueError if the value is nested more deeply than the functions that decode records can
    follow."""
    level = [value]
    for _ in range(_MAX_NESTED):
        contents = [item.values() if isinstance(item, dict) else item for item in level]
        # Most lists are of numbers, at which only their types need a look.
        nested = (items for items in contents if not _NESTABLE.isdisjoint(map(type, items)))
        level = [item for items in nested for item in items if type(item) in _NESTABLE]
        if not level:
            return
    raise ValueError(_NESTED)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        shown = text if len(text) <= _MAX_DIGITS else f"{text[:_MAX_DIGITS]}... of {len(text)} characters"
        raise ValueError(f"the number {shown} is beyond floating point")
    return value


def _integer(text: str) -> int:
    _finite(text)
    return int(text)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


_MAX_DIGITS = 30  # of a number in an error
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 300  # it may be beyond floating point
# Four times as slow as msgspec, with better errors.
_STRICT = json.JSONDecoder(parse_float=_finite, parse_int=_integer, parse_constant=_no_number)
