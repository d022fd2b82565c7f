"""Declared schemas of JSON files: typed records, unknown keys that survive, errors that name the value."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from types import FunctionType, UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from earlybird.data.errors import InputError
from earlybird.data.json_text import FORMER_KEYS
from earlybird.data.layout import MAX_RANKS
from earlybird.data.units import MAX_BYTES, MAX_BYTES_PER_S, MAX_S, MIN_BYTES_PER_S

_LARGEST = 1e30  # no count, cost or rate of a program is larger
_MAX_RATIO = 1e20  # a century over less than a nanosecond
# By the end of a field's name, the largest number it may hold, in any form: one, a list, an estimate. Keys of
# a field that is a JSON object have the same limits.
_MAX = {
    "_bytes_per_s": (MAX_BYTES_PER_S, "bytes per second"),
    "_per_s": (_LARGEST, ""),
    "_s": (MAX_S, "seconds, which are a century"),
    "_bytes": (MAX_BYTES, "bytes"),
    "speed_up": (_MAX_RATIO, ""),
}
Number = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=_LARGEST)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=_LARGEST)]
Bandwidth = Annotated[float, msgspec.Meta(ge=MIN_BYTES_PER_S, le=MAX_BYTES_PER_S)]
Ratio = Annotated[float, msgspec.Meta(ge=-_MAX_RATIO, le=_MAX_RATIO)]  # of times, and its errors
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Bytes = Annotated[int, msgspec.Meta(ge=0, le=MAX_BYTES)]
Count = Annotated[int, msgspec.Meta(ge=1, le=MAX_BYTES)]
Natural = Annotated[int, msgspec.Meta(ge=0, le=MAX_BYTES)]
# Numbers of ranks, and of what has ranks or them: nodes, sockets, cores, threads, launches.
Ranks = Annotated[int, msgspec.Meta(ge=1, le=MAX_RANKS)]
Rank = Annotated[int, msgspec.Meta(ge=0, lt=MAX_RANKS)]

# By the regular expression of a text: the texts that it allows, for errors.
_FORMS: dict[str, str] = {}


def form(pattern: str, allowed: str) -> msgspec.Meta:
    """Return metadata that restrict a text to the form `pattern`; errors ask for `allowed`."""
    _FORMS[pattern] = allowed
    return msgspec.Meta(pattern=pattern)


def allowed_form(pattern: str) -> str:
    """Return the description of a text of the form `pattern` that errors ask for."""
    return _FORMS[pattern]


Extra = Mapping[str, Any]  # the unknown keys of a record
# Metadata of a field that is written only if it is neither empty nor zero.
OMIT_EMPTY = {"omit_empty": True}


class Estimate(NamedTuple):
    """A median over launches and its interval, defined in `compare.intervals`.

    A field `time_s` of this type has the keys `time_s`, `time_low_s` and `time_high_s`.
    """

    value: NotNegative
    low: NotNegative
    high: NotNegative

    @classmethod
    def exact(cls, value: float) -> "Estimate":
        """Return a value without an interval."""
        return cls(value, value, value)

    def inverse(self) -> "Estimate":
        """Return the estimate of 1/x."""
        return Estimate(1 / self.value, 1 / self.high, 1 / self.low)


_JSON_NAMES = {
    "float": "a number", "int": "a whole number", "str": "text", "bool": "true or false",
    "object": "a JSON object", "array": "a JSON list",
}  # fmt: skip
_MAX_CHARACTERS = 60  # of a given value in an error


class Record:
    """The base of the dataclasses that describe a JSON object, with a field for each key.

    Unknown keys are kept in the field that `unknown_keys` names; a record without it refuses them. `schema`
    names the format if the record is a whole file. `__post_init__` raises ValueError for what types do not
    express. `tools.file_tables` copies the meaning of each key from the section "Attributes" of the docstring
    to docs/files/, also from those of the TypedDicts of `key_types`.
    """

    schema: ClassVar[str] = ""
    unknown_keys: ClassVar[str] = "extra"
    # By the name of a field that is a JSON object, such as `extra`, a TypedDict of the keys that this version
    # reads, or a function that gives it for a record; other keys are free.
    key_types: ClassVar[Mapping[str, Any]] = {}
    # Fields that are no keys of the object: what contains it has them, such as the name of a level.
    given_elsewhere: ClassVar[tuple[str, ...]] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object, without values that are None by default and without empty ones of
        OMIT_EMPTY."""
        value: dict[str, Any] = {"schema": self.schema} if self.schema else {}
        for one in fields(self):  # type: ignore[arg-type]  # its subclasses are dataclasses
            if one.name in self.given_elsewhere:
                continue
            item = getattr(self, one.name)
            if one.name == self.unknown_keys:
                value |= dict(item)
            elif isinstance(item, Estimate):
                value |= dict(zip(estimate_keys(one.name), item, strict=True))
            elif item is None:
                value |= {one.name: None} if one.default is MISSING else {}
            elif not one.metadata.get("omit_empty") or item:
                value[one.name] = _plain(item)
        return value


Kind = TypeVar("Kind", bound=Record)


# Of estimates, in the names of their keys.
_UNITS = ("_bytes_per_s", "_per_s", "_s")


def estimate_keys(name: str) -> tuple[str, str, str]:
    """Return the keys of an estimate: its value, and the ends of its interval, with the unit at the end."""
    unit = next((unit for unit in _UNITS if name.endswith(unit)), "")
    stem = name.removesuffix(unit)
    return name, f"{stem}_low{unit}", f"{stem}_high{unit}"


def _plain(item: Any) -> Any:
    if isinstance(item, Record):
        return item.to_json()
    if isinstance(item, np.ndarray):
        return item.tolist()
    if isinstance(item, Mapping):
        return {str(key): _plain(one) for key, one in item.items()}
    return [_plain(one) for one in item] if isinstance(item, list | tuple) else item


def decode(value: Any, kind: type[Kind], where: str, remedy: str = "") -> Kind:
    """Return the record of a JSON value of any version; raise an InputError that names `where`, the path in
    it, the value given and the values allowed, then `remedy`."""
    if kind.schema and isinstance(value, Mapping) and value.get("schema") != kind.schema:
        raise InputError(
            f"{where} has the schema {value.get('schema')!r}; this version reads {kind.schema!r}"
        )
    try:
        value = _prepared(value, kind)
        record = _convert(value, kind)
        _require_limits(record)
        return record
    except (msgspec.ValidationError, ValueError) as error:
        reason = _explain(str(error), value, kind)
        raise InputError(f"{where}{reason}{remedy and '; '}{remedy}") from error


def check_keys(value: Any, kind: Any, where: str, remedy: str = "") -> None:
    """Raise the error of `decode` unless `value` has the types of `kind`, a TypedDict; other keys are
    allowed."""
    try:
        _convert(value, kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise InputError(f"{where}{_explain(str(error), value, kind)}{remedy and '; '}{remedy}") from error


def require_not_negative(record: Any, *names: str) -> None:
    """Raise ValueError if an array of these names, or an array in a dictionary of arrays, has a negative
    number."""
    for name in names:
        value = getattr(record, name)
        arrays = (
            {f"{name}.{key}": array for key, array in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
        for place, array in arrays.items():
            if array is not None and array.size and array.min() < 0:
                raise ValueError(f"{place} has {array.min():g}; give numbers of 0 or more")


def require_one_of(name: str, given: Any, allowed: Iterable[str]) -> None:
    """Raise ValueError unless `given` is allowed."""
    if given not in allowed:
        raise ValueError(f"{name} is {given!r}; give one of {', '.join(allowed)}")


def require_ascending(starts: Sequence[int]) -> None:
    """Raise ValueError unless `min_bytes` of protocols begins at 0 and ascends."""
    if list(starts) != sorted({0, *starts}):
        raise ValueError(f"min_bytes is {list(starts)}; it must begin at 0 and ascend")


def _convert(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind, dec_hook=_array, str_keys=True)
    except UnicodeEncodeError as error:  # a key with half of a surrogate pair
        raise ValueError(f"{error.object[:_MAX_CHARACTERS]!r} is not text; give UTF-8") from None


def _require_limits(record: Record, where: str = "") -> None:
    """Raise ValueError with the name of the first number that exceeds the limit of its unit."""
    kind = type(record)
    for name, types in kind.key_types.items():
        place = where if name == kind.unknown_keys else f"{where}{name}."
        declared = types(record) if isinstance(types, FunctionType) else types
        _require_key_types(dict(getattr(record, name)), declared, place)
    limited, nested = _limits(kind)  # type: ignore[arg-type]  # a class is hashable
    for name, (most, unit) in limited.items():
        _require_at_most(most, unit, getattr(record, name), f"{where}{name}")
    for name in (field.name for field in fields(record)):  # type: ignore[arg-type]  # it is a dataclass
        value = getattr(record, name)
        if name == kind.unknown_keys:
            _require_limits_of_keys(value, where)
        elif isinstance(value, Mapping | list | tuple):
            _require_limits_of_keys({name: value}, where)
    for name in nested:
        for place, one in _records_in(getattr(record, name), f"{where}{name}"):
            _require_limits(one, f"{place}.")


def _require_limits_of_keys(mapping: Mapping[Any, Any], where: str) -> None:
    """Raise ValueError for a number that exceeds the limit of its unit in an object that is not a record, or
    in the objects inside it."""
    for key, item in mapping.items():
        if isinstance(item, int | float):
            if (limit := _limit(str(key))) is not None:
                _require_at_most(*limit, item, f"{where}{key}")
        elif isinstance(item, Mapping):
            _require_limits_of_keys(item, f"{where}{key}.")
        elif isinstance(item, list | tuple) and item and isinstance(item[0], Mapping):
            for k, inner in enumerate(item):
                if isinstance(inner, Mapping):
                    _require_limits_of_keys(inner, f"{where}{key}[{k}].")


def _require_at_most(most: float, unit: str, value: Any, place: str) -> None:
    largest = _largest(value)
    if abs(largest) > most:
        raise ValueError(f"{place} has {largest:g}; give at most {most:g} {unit}".strip())


def _limit(name: str) -> tuple[float, str] | None:
    """Return the largest number of a key, and its unit, by the end of its name; None if there is no limit."""
    return next((_MAX[end] for end in _MAX if name.endswith(end)), None)


def _require_key_types(value: dict[str, Any], kind: Any, where: str) -> None:
    try:
        _convert(value, kind)
    except (msgspec.ValidationError, ValueError) as error:
        reason = _explain(str(error), value, kind)
        if reason.startswith(" "):  # it has no such key
            raise ValueError(f"{where.removesuffix('.')}{reason}".strip()) from error
        raise ValueError(f"{where}{reason.removeprefix(': ')}") from error


@cache
def _limits(kind: type[Record]) -> tuple[dict[str, tuple[float, str]], list[str]]:
    """Return the fields of a record whose names end in a unit, and the fields that contain records."""
    types = _types(kind)  # type: ignore[arg-type]
    limited = {name: limit for name in types if (limit := _limit(name)) is not None}
    return limited, [name for name, inner in types.items() if inner not in (None, Estimate)]


def _largest(value: Any) -> float:
    """Return the number of largest magnitude; 0 if there are no numbers."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple) and not isinstance(value, Estimate):
        return max((_largest(item) for item in value), key=abs, default=0.0)
    # As floating point: the smallest whole number of 64 bits has no absolute value of 64 bits.
    array = np.asarray(value, float) if isinstance(value, np.ndarray | float | int | tuple) else np.zeros(1)
    return float(max(array.max(initial=0), array.min(initial=0), key=abs)) if array.size else 0.0


def _records_in(value: Any, where: str) -> Iterator[tuple[str, Record]]:
    if isinstance(value, Record):
        yield where, value
    elif isinstance(value, list | tuple):
        for k, item in enumerate(value):
            yield from _records_in(item, f"{where}[{k}]")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _records_in(item, f"{where}.{key}")


def _array(kind: type, value: Any) -> np.ndarray:
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if not array.ndim or not np.isfinite(array).all():
        raise ValueError("give a JSON list of numbers, or of such lists of one length")
    return array


def _prepared(value: Any, kind: Any) -> Any:
    """Return `value` with the current names of keys, and with unknown keys in `extra`, in every record of
    `kind`."""
    if _is_record(kind):
        return _prepared_record(value, kind) if isinstance(value, dict) else value
    inner = next(one for one in get_args(kind) if _holds_records(one))
    if isinstance(kind, UnionType):
        return _prepared(value, inner)
    if isinstance(value, list):
        return [_prepared(item, inner) for item in value]
    if isinstance(value, dict) and get_origin(kind) is dict:
        return {key: _prepared(item, inner) for key, item in value.items()}
    return value


def _prepared_record(value: dict[str, Any], kind: type[Record]) -> dict[str, Any]:
    types = _types(kind)  # type: ignore[arg-type]  # a class is hashable
    intervals = {_interval_key(name): name for name in types if types[name] is Estimate}
    names = {one for one in FORMER_KEYS if FORMER_KEYS[one] in types or FORMER_KEYS[one] in intervals}
    value = {FORMER_KEYS[key] if key in names - set(types) else key: item for key, item in value.items()}
    for key, name in intervals.items():
        _join_estimate(value, name, key)
    known, unknown = {}, {}
    for name, item in value.items():
        if name in types and name != kind.unknown_keys:
            known[name] = item if types[name] in (None, Estimate) else _prepared(item, types[name])
        elif name != "schema" or not kind.schema:
            unknown[name] = item
    if unknown and kind.unknown_keys not in types:
        raise ValueError(f"it has the key {next(iter(unknown))!r}; the keys are {', '.join(types)}")
    return known | {kind.unknown_keys: unknown} if kind.unknown_keys in types else known


def _interval_key(name: str) -> str:
    """Return the key that held both ends of the interval in the first version."""
    return estimate_keys(name)[1].replace("_low", "_interval")


def _join_estimate(value: dict[str, Any], name: str, interval: str) -> None:
    """Replace the keys of an estimate by a list."""
    ends = [value.pop(key, value.get(name)) for key in estimate_keys(name)[1:]]
    ends = value.pop(interval, None) or ends
    if isinstance(ends, list) and value.get(name) is not None:
        value[name] = _Ends([value[name], *ends])


class _Ends(list[Any]):
    """An estimate as a list whose elements have their own keys in a file."""


@cache
def _types(kind: type[Record]) -> dict[str, Any]:
    """Return the type of each field that contains records or is an estimate; None for the others."""
    hints = get_type_hints(kind)
    types = {one.name: _composed(hints[one.name]) for one in fields(kind)}  # type: ignore[arg-type]
    return types


def _composed(kind: Any) -> Any:
    return Estimate if Estimate in (kind, *get_args(kind)) else kind if _holds_records(kind) else None


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Record)


def _holds_records(kind: Any) -> bool:
    return _is_record(kind) or any(map(_holds_records, get_args(kind)))


def _explain(message: str, value: Any, kind: Any) -> str:
    """Explain the message of msgspec, `Expected TYPE, got TYPE - at PATH`, in plain terms, with the value.

    Its errors have no path, type or limit as an attribute, only this sentence. So the sentence is parsed,
    only here.
    """
    reason, _, path = message.partition(" - at ")
    names, given = "", value
    for name, index in re.findall(r"\.([^.\[\]`]+)|\[([0-9]+|\.\.\.)\]", path):
        if index == "...":  # a key, which msgspec does not name
            index = _culprit(given, lambda: _message(value, kind) == message)
        key = name or (index if isinstance(given, dict) else int(index))
        field = names.rpartition(".")[2]
        if isinstance(given, _Ends) and int(key) < len(Estimate._fields):
            names = names.removesuffix(field) + estimate_keys(field)[key]
        else:
            names += f"[{key}]" if isinstance(given, list) else f"{names and '.'}{key}"
        given = given[key]
    if path.startswith("`key`"):
        given = _culprit(given, lambda: _message(value, kind) == message)
        names += " key"
    if missing := re.fullmatch(r"Object missing required field `(.+)`", reason):
        return f"{names and ', '}{names} has no {missing[1]!r}; give it"
    if form := re.fullmatch("Expected `str` matching regex '(.+)'", reason):
        reason = f"Expected {_FORMS[form[1]]}"
    expected = re.fullmatch(r"Expected (.+?)(, got (.+))?|Number out of range", reason)
    if expected is None:
        return f"{names and ', '}{names}: {reason}"
    shown = repr(given)
    shown = shown if len(shown) <= _MAX_CHARACTERS else f"{shown[:_MAX_CHARACTERS]}..."
    allowed = re.sub(
        r"`([^`]+)`",
        lambda types: " or ".join(_JSON_NAMES.get(one, one) for one in types[1].split(" | ")),
        expected[1] or f"a number of at most {_LARGEST:g}",
    ).removesuffix(".0")
    return f": {names} is {shown}; give {allowed}" if names else f" is {shown}; give {allowed}"


def _culprit(mapping: dict[str, Any], fails: Callable[[], bool]) -> str:
    """Return the first key of `mapping` that alone makes `fails` true."""
    items = dict(mapping)
    try:
        for key, item in items.items():
            mapping.clear()
            mapping[key] = item
            if fails():
                return key
    finally:
        mapping.clear()
        mapping.update(items)
    return next(iter(items))


def _message(value: Any, kind: Any) -> str:
    try:
        _convert(value, kind)
    except (msgspec.ValidationError, ValueError) as error:
        return str(error)
    return ""
