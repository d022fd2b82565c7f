"""Changes files as damage, other programs and attackers do: bytes, tokens, JSON, tables, archives."""

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Any

# What stands in the place of a file.
SPECIAL = ("absent", "folder", "loop", "endless", "dangling", "unreadable", "fifo")
_OFTEN = (4, 4, 4, 4, 4, 4, 1)  # whoever reads a fifo waits for a writer


class Special(str):
    """One of SPECIAL."""


Content = bytes | Special
Files = dict[str, Content]

NUMBERS = (
    "0", "-1", "1", "2", "-0.0", "0.5", "-1e-9", "100000", "2147483647", "2147483648", "4294967295",
    "1500000000", "4611686018427387904", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "18446744073709551616", "1e15", "1e30", "1e300", "1e308", "-1e308", "1.8e308", "1e-400", "5e-324",
    "1e-308", "NaN", "Infinity", "-Infinity", "1" * 400, "1e999999",
)  # fmt: skip
STRINGS = (
    "", "x" * 200_000, "x" * 300, "\x00", "a\x00b", "\x1b[31mred\x1b]0;title\x07", "\u202eabc\u2066",
    "\ud800", "a\udcffb", "\x85\x9b", "line\nbreak", "tab\tcell", "\r", "=1+1", "@SUM(1)",
    "<script>alert(1)</script>", "../../etc", "/dev/zero", "~", "1", "true", "a,b", '"', "'; touch x; '", 
    "\u0663", "0001-01-01T00:00:00",
    "99999-99-99", "9999-12-31T23:59:59-23:59", "%s%n{0}{x}", "\ufeff", "2x", "1e400", "100000x100000x100000",
)  # fmt: skip
OTHERS = ("null", "true", "[]", "{}", "[[]]", "[null]", '{"": 0}', '"1"', "[1e999]", "[1, [2]]")


def mutate(files: Mapping[str, bytes], changeable: tuple[str, ...], random: Random) -> tuple[Files, str]:
    """The files with up to three changes, and what was changed."""
    changed: Files = dict(files)
    notes = []
    if random.random() < 0.04:
        name, special = random.choice(changeable), Special(random.choices(SPECIAL, _OFTEN)[0])
        return changed | {name: special}, f"{name} is {special}"
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        name = random.choice(changeable)
        before = changed[name]
        assert isinstance(before, bytes)
        changed[name], note = mutate_content(before, random)
        notes.append(f"{name}: {note}")
    return changed, "; ".join(notes)


def mutate_content(data: bytes, random: Random) -> tuple[bytes, str]:
    """Changed content, and how it was changed."""
    if random.random() < 0.12:
        return _bytes(data, random)
    for recognise, change in _KINDS:
        if recognise(data):
            return change(data, random)
    return _bytes(data, random)


def mutate_argument(text: str, random: Random) -> str:
    """A changed argument of a command, which has no NUL."""
    changed, _ = _text(text.encode(), random)
    return changed.replace(b"\0", b"")[:100_000].decode(errors="surrogateescape")


# Bytes ---------------------------------------------------------------------------------------------------


def _bytes(data: bytes, random: Random) -> tuple[bytes, str]:
    at = random.randint(0, len(data))
    end = min(len(data), at + random.choice((1, 2, 8, 64)))
    junk = bytes(random.randrange(256) for _ in range(random.randint(1, 8)))
    changes: dict[str, Callable[[], bytes]] = {
        "a flipped bit": lambda: _flipped(data, random),
        "inserted bytes": lambda: data[:at] + junk + data[at:],
        "deleted bytes": lambda: data[:at] + data[end:],
        "cut": lambda: data[:at],
        "a repeated part": lambda: data[:end] + data[at:],
        "twice": lambda: data + data,
        "NUL": lambda: data[:at] + b"\0" + data[at:],
        "NUL at the end": lambda: data + b"\0" * random.choice((1, 4, 8)),
        "no UTF-8": lambda: data[:at] + random.choice((b"\xff", b"\xc3", b"\xed\xa0\x80")) + data[at:],
        "a control character": lambda: data[:at] + random.choice((b"\x1b[2J", b"\x7f", b"\x08")) + data[at:],
        "UTF-16": lambda: data.decode("latin-1").encode("utf-16"),
        "BOM": lambda: b"\xef\xbb\xbf" + data,
        "CR LF": lambda: data.replace(b"\n", b"\r\n"),
        "CR": lambda: data.replace(b"\n", b"\r"),
        "empty": lambda: b"",
        "blank": lambda: b"\n" * 3,
        "any bytes": lambda: bytes(random.randrange(256) for _ in range(random.randint(1, 200))),
    }
    name = random.choice(list(changes))
    return changes[name](), f"{name} at {at}"


def _flipped(data: bytes, random: Random) -> bytes:
    if not data:
        return b"\1"
    changed = bytearray(data)
    changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


_INTEGERS = (0, 1, 2, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
_DOUBLES = (0.0, -1.0, math.nan, math.inf, -math.inf, 1e308, 5e-324, 1e-300)


def _fields(data: bytes, random: Random, first: int = 0, end: int | None = None) -> tuple[bytes, str]:
    """Binary data with another value of an aligned field."""
    end = len(data) if end is None else min(end, len(data))
    width = random.choice((8, 8, 4, 4, 2, 1))
    if end - first < width:
        return _bytes(data, random)
    at = first + width * random.randrange((end - first) // width)
    if width == 8 and random.random() < 0.3:
        field = struct.pack("=d", random.choice(_DOUBLES))
    else:
        field = (random.choice(_INTEGERS) % 256**width).to_bytes(width, "little")
    return data[:at] + field + data[at + width :], f"another field of {width} bytes at {at}"


# Recordings ----------------------------------------------------------------------------------------------

_CHUNK = struct.Struct("=IIQII")
_CHUNK_MAGIC = struct.pack("=I", 0x43524245)
_TRACES = tuple(
    struct.pack("=Q", magic) for magic in (0x3245434152544245, 0x3145434152544245, 0x314E45504F4245)
)
_TRACE_HEAD_BYTES = 96


def _chunks(data: bytes, random: Random) -> tuple[bytes, str]:
    """A rank's file with a changed chunk whose check sum is right."""
    chunks = []
    at = 0
    while at + _CHUNK.size <= len(data):
        _, kind, length, _, _ = _CHUNK.unpack_from(data, at)
        chunks.append((kind, data[at + _CHUNK.size : at + _CHUNK.size + length]))
        at += _CHUNK.size + length
    if not chunks:
        return _bytes(data, random)
    k = random.randrange(len(chunks))
    kind, payload = chunks[k]
    action = random.random()
    if action < 0.8:
        payload, note = _json(payload, random) if kind == 1 else _fields(payload, random)
        chunks[k] = (kind, payload)
        note = f"chunk {k}: {note}"
    elif action < 0.87:
        del chunks[k]
        note = f"without chunk {k}"
    elif action < 0.94:
        chunks.insert(random.randrange(len(chunks)), chunks[k])
        note = f"chunk {k} twice"
    else:
        chunks[k] = (random.choice((0, 1, 2, 3, 4, 99)), payload)
        note = f"another type of chunk {k}"
    return b"".join(
        _CHUNK.pack(0x43524245, kind, len(part), zlib.crc32(part), 0) + part for kind, part in chunks
    ), note  # fmt: skip


def _trace(data: bytes, random: Random) -> tuple[bytes, str]:
    return _fields(data, random, end=_TRACE_HEAD_BYTES if random.random() < 0.4 else None)


# JSON ----------------------------------------------------------------------------------------------------


class _Raw(str):
    """Text that stands in JSON as it is."""


def _dump(value: Any) -> str:
    if isinstance(value, _Raw):
        return str(value)
    if isinstance(value, dict):
        items = ", ".join(f"{json.dumps(key)}: {_dump(item)}" for key, item in value.items())
        return f"{{{items}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_dump, value))}]"
    return json.dumps(value)


def _paths(value: Any, path: tuple = (), groups: dict | None = None) -> dict[tuple, list[tuple]]:
    """The paths of all parts of a JSON value but itself, by their keys: items of a list are one group."""
    groups = {} if groups is None else groups
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        inner = (*path, key)
        groups.setdefault(tuple("[]" if isinstance(k, int) else k for k in inner), []).append(inner)
        _paths(item, inner, groups)
    return groups


def _parent(value: Any, path: tuple) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


def another(value: Any, random: Random) -> Any:
    """Another JSON value, mostly of the same type."""
    if random.random() < 0.25:
        return _Raw(
            random.choice(OTHERS + NUMBERS) if random.random() < 0.7 else json.dumps(random.choice(STRINGS))
        )
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float) and random.random() < 0.25:
        factor = random.choice((-1, 2, 10, 1000, 1e-3, 1e9))
        return int(value * factor) if isinstance(value, int) else value * factor
    if isinstance(value, int | float):
        return _Raw(random.choice(NUMBERS))
    if isinstance(value, str):
        return random.choice(STRINGS) if random.random() < 0.8 else value + random.choice(STRINGS)
    if isinstance(value, list):
        return random.choice(
            ([], value * 2, value[::-1], value[1:], value[:1] * 1000, [value], dict(enumerate(value)))
        )
    if isinstance(value, dict):
        return random.choice(
            ({}, [value], list(value.values()), list(value.items()), {str(k): value for k in range(3)})
        )
    return _Raw(random.choice(OTHERS + NUMBERS))


def _json(data: bytes, random: Random) -> tuple[bytes, str]:
    try:
        value = json.loads(data)
        groups = _paths(value)
    except (ValueError, RecursionError):  # an earlier change has broken it
        groups = {}
    if not groups:
        return _bytes(data, random)
    group = random.choice(list(groups))
    path = random.choice(groups[group])
    parent, key = _parent(value, path), path[-1]
    where = ".".join(map(str, path))
    action = random.random()
    if action < 0.62:
        parent[key] = another(parent[key], random)
        note = f"another {where}"
    elif action < 0.72:
        new = another(parent[key], random)
        for same in groups[group]:
            _parent(value, same)[same[-1]] = new
        note = f"another {'.'.join(map(str, group))}"
    elif action < 0.84:
        del parent[key]
        note = f"without {where}"
    elif action < 0.88 and isinstance(parent, dict):
        new = another(parent[key], random)
        text = _dump(value)
        return (text[:-1] + f", {json.dumps(path[0])}: {_dump(new)}" + text[-1]).encode(), f"{path[0]} twice"
    elif action < 0.91:
        parent[key] = _Raw(random.choice(("[", '{"x":')) * random.choice((10, 500, 100_000)))
        note = f"deep nesting in {where}"
    elif action < 0.95 and isinstance(parent, dict):
        parent[random.choice(STRINGS)[:300]] = parent.pop(key) if random.random() < 0.5 else parent[key]
        note = f"another key for {where}"
    else:
        other = random.choice(groups[random.choice(list(groups))])
        parent[key] = json.loads(_dump(_parent(value, other)[other[-1]]))
        note = f"{'.'.join(map(str, other))} in the place of {where}"
    return _dump(value).encode(), note


def _json_lines(data: bytes, random: Random) -> tuple[bytes, str]:
    lines = data.split(b"\n")
    full = [k for k, line in enumerate(lines) if _is_json(line)]
    if random.random() < 0.15:
        return _lines(data, random)
    if random.random() < 0.2:  # the same change of all lines
        seed = random.random()
        for k in full:
            lines[k], note = _json(lines[k], Random(seed))
        return b"\n".join(lines), f"all lines: {note}"
    k = random.choice(full)
    lines[k], note = _json(lines[k], random)
    return b"\n".join(lines), f"line {k + 1}: {note}"


# Text and tables -----------------------------------------------------------------------------------------

_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][\w.-]*")
_SEPARATORS = (b"", b",", b" ", b"\t", b"\n", b"/", b"*")
_SEPARATOR = re.compile(rb"[,;:=x*/ \t]+")


def _text(data: bytes, random: Random) -> tuple[bytes, str]:
    action = random.random()
    if action < 0.5:
        return _token(data, _NUMBER, random, lambda: random.choice(NUMBERS).encode(), "number")
    if action < 0.65:
        return _token(data, _WORD, random, lambda: _encoded(random.choice(STRINGS)), "word")
    if action < 0.72:
        return _token(data, random.choice((_NUMBER, _WORD)), random, lambda: b"", "token less")
    if action < 0.8:
        return _token(data, _SEPARATOR, random, lambda: random.choice(_SEPARATORS), "separator")
    if action < 0.92:
        return _lines(data, random)
    return _bytes(data, random)


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _token(
    data: bytes, pattern: re.Pattern[bytes], random: Random, new: Callable[[], bytes], what: str
) -> tuple[bytes, str]:
    places = [match.span() for match in pattern.finditer(data)]
    if not places:
        return _bytes(data, random)
    begin, end = random.choice(places)
    value = new()
    return data[:begin] + value + data[end:], f"another {what} at {begin}: {value[:40]!r}"


def _lines(data: bytes, random: Random) -> tuple[bytes, str]:
    lines = data.split(b"\n")
    k, other = random.randrange(len(lines)), random.randrange(len(lines))
    action = random.choice(("swap", "repeat", "repeat much", "delete", "long", "join", "cut"))
    if action == "swap":
        lines[k], lines[other] = lines[other], lines[k]
    elif action == "repeat":
        lines.insert(k, lines[k])
    elif action == "repeat much":
        lines[k:k] = lines[k : k + 1] * 5000
    elif action == "delete":
        del lines[k]
    elif action == "long":
        lines[k] += random.choice((b"1", b"x", b" ", b'"')) * 200_000
    elif action == "join":
        lines[k : k + 2] = [b" ".join(lines[k : k + 2])]
    else:
        lines[k] = lines[k][: len(lines[k]) // 2]
    return b"\n".join(lines), f"{action} line {k + 1}"


# Archives of arrays --------------------------------------------------------------------------------------

_BOMB_BYTES = 1 << 29
_SHAPES = ("()", "(0,)", "(1,)", "(2, 2)", "(-1,)", "(1000000000000,)", "(4611686018427387904,)", "(2**40,)")
_TYPES = ("<i8", "<f8", "<u8", ">i8", "<i4", "|O", "|S8", "<U4", "<c16", "|b1", "<M8[s]", "|V8")


def _archive(data: bytes, random: Random) -> tuple[bytes, str]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, ValueError, EOFError, zlib.error, NotImplementedError, RuntimeError):
        return _bytes(data, random)
    if not members:
        return _bytes(data, random)
    name = random.choice(list(members))
    header, _, content = members[name].partition(b"\n")
    action = random.random()
    if action < 0.35:
        members[name], note = _fields(members[name], random, first=len(header) + 1)
    elif action < 0.5:
        key = random.choice((rb"'shape': *\([^)]*\)", rb"'descr': *'[^']*'"))
        new = (
            f"'shape': {random.choice(_SHAPES)}" if b"shape" in key else f"'descr': '{random.choice(_TYPES)}'"
        )
        changed = re.sub(key, new.encode(), header)
        members[name], note = changed.ljust(len(header))[: len(header)] + b"\n" + content, new
    elif action < 0.6:
        members[name], note = header + b"\n" + content[: random.randrange(len(content) + 1)], "cut"
    elif action < 0.7:
        del members[name]
        note = "absent"
    elif action < 0.75:
        members[name + random.choice(("x", "/", "\x1b"))] = members.pop(name)
        note = "another name"
    elif action < 0.85:
        return _lying(data, random), "a lying size"
    elif action < 0.88:
        return _bomb(tuple(members)), "zeros that need much memory"
    else:
        members[name], note = _bytes(members[name], random)
    stream = io.BytesIO()
    method = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(stream, "w", method) as archive:
        for member, value in members.items():
            archive.writestr(zipfile.ZipInfo(member), value, compress_type=method)
    return stream.getvalue(), f"{name}: {note}"


def _lying(data: bytes, random: Random) -> bytes:
    """Another size, offset, method or check sum in the headers."""
    changed = bytearray(data)
    signature, places = random.choice(
        (
            (b"PK\x01\x02", (10, 16, 20, 24, 28, 42)),
            (b"PK\x03\x04", (8, 14, 18, 22, 26)),
            (b"PK\x05\x06", (8, 10, 12, 16)),
        )
    )
    at = data.find(signature) + random.choice(places)
    width = 4 if at + 4 <= len(changed) else 2
    changed[at : at + width] = random.choice((0, 1, 99, 2**16, 2**31, 2**32 - 1)).to_bytes(4, "little")[
        :width
    ]
    return bytes(changed)


@cache
def _bomb(names: tuple[str, ...]) -> bytes:
    """An archive of small size whose arrays take gigabytes."""
    shape = f"({_BOMB_BYTES // 8},)"
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in names:
            with archive.open(name, "w") as member:
                member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
                for _ in range(_BOMB_BYTES >> 20):
                    member.write(bytes(1 << 20))
    return stream.getvalue()


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict | list)
    except (ValueError, RecursionError):
        return False


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


_KINDS: tuple[tuple[Callable[[bytes], bool], Callable[[bytes, Random], tuple[bytes, str]]], ...] = (
    (lambda data: data.startswith(_CHUNK_MAGIC), _chunks),
    (lambda data: data.startswith(_TRACES), _trace),
    (lambda data: data.startswith(b"PK\x03\x04"), _archive),
    (_is_json, _json),
    (lambda data: any(map(_is_json, data.split(b"\n")[:2])), _json_lines),
    (_is_text, _text),
    (lambda data: True, _fields),
)
