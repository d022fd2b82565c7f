"""Write the tables of keys in docs/files/ from the records in `earlybird.data` and their docstrings.

`<!-- keys of MODULE.CLASS -->` marks the place of the table of a class; `python -m tools.file_tables` writes
what follows, up to `<!-- end -->`. The section "Attributes" of a docstring has the meaning of each key.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
import numpy as np

from earlybird.data.schema import Estimate, Record, allowed_form

PAGES = Path(__file__).parents[1] / "docs" / "files"
_TABLE = re.compile(r"<!-- keys of (\w+)\.(\w+) -->\n(?:.*?\n)??<!-- end -->", re.DOTALL)
_UNITS = {"_bytes_per_s": "bytes/s", "_s_per_byte": "s/byte", "_s": "seconds", "_bytes": "bytes"}
_NAMES = {float: "number", int: "whole number", str: "text", bool: "true or false", NoneType: "null"}
# Larger limits are those of all numbers of a kind, which docs/files/README.md has.
_SMALL = 1e6
# What keys of many records mean, unless the docstring of a record says more.
COMMON_KEYS = {
    "kernel": "the measuring program",
    "quantity": "the measured quantity",
    "method": "method of sending, or algorithm of the collective; empty if the kernel has only one",
    "config": "the other values that identify the point",
    "level": "`intra_socket`, `inter_socket` or `inter_node`",
    "model": "model of exchanges",
    "model_reason": "reason for the choice of the model; absent with `--model`",
    "mpi": "flavour of the MPI",
    "launcher": "launcher of the ranks",
    "operation": "MPI operation",
    "ranks": "number of ranks",
    "root": "root of the operation",
    "size_bytes": "size of the message or buffer",
    "layout": "layout, as `--layout`",
    "map_by": "mapping, as `--map-by`",
    "profile_id": "`id` of the profile",
    "pattern_sha256": "digest of [the messages](exchanges.md#pattern)",
    "notes": "sentences that the command printed",
}


class Key(NamedTuple):
    """A row of a table."""

    name: str
    type: str
    default: str
    meaning: str


def class_of(module: str, name: str) -> Any:
    """Return a class of `earlybird.data`."""
    return getattr(import_module(f"earlybird.data.{module}"), name)


def descriptions(kind: Any) -> dict[str, str]:
    """Return the meaning of each name in "Attributes" of the docstrings of a class and its bases."""
    found: dict[str, str] = {}
    for base in getattr(kind, "__mro__", [kind])[::-1]:
        section = inspect.cleandoc(base.__doc__ or "").partition("Attributes\n----------\n")[2]
        for names, text in re.findall(r"^(\w[\w, ]*) : ((?:.+\n?)(?:[ ]{4}.*\n?)*)", section, re.MULTILINE):
            found |= dict.fromkeys(names.split(", "), " ".join(text.split()).rstrip("."))
    return found


def keys_of(kind: Any) -> list[Key]:
    """Return the keys of a record or TypedDict, with those that it knows of its `extra`."""
    hints = get_type_hints(kind, include_extras=True)
    known = descriptions(kind)
    keys = []
    if is_typeddict(kind):
        for name, hint in hints.items():
            default = "required" if name in kind.__required_keys__ else ""
            keys.append(
                Key(
                    name,
                    type_text(hint, name, nullable=False),
                    default,
                    known.get(name, COMMON_KEYS.get(name, "")),
                )
            )
        return keys
    for field in fields(kind):
        if field.name not in (kind.unknown_keys, *kind.given_elsewhere):
            default = _default(field)
            text = type_text(hints[field.name], field.name, nullable=default == "required")
            keys.append(
                Key(field.name, text, default, known.get(field.name, COMMON_KEYS.get(field.name, "")))
            )
    return keys + [key for further in _further_types(kind) for key in keys_of(further)]


def _further_types(kind: Any) -> list[Any]:
    """Return the TypedDict of the further keys of a record that is named after it."""
    further = None if is_typeddict(kind) else kind.key_types.get(kind.unknown_keys)
    return [further] if getattr(further, "__name__", "") == f"{kind.__name__}Keys" else []


def _default(field: Any) -> str:
    if field.default is not MISSING:
        value = field.default
    elif field.default_factory is not MISSING:
        value = field.default_factory()
    else:
        return "required"
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}"
    return f"`{value}`" if value and isinstance(value, str) else "empty" if not value else "see text"


def type_text(hint: Any, name: str = "", *, nullable: bool = True) -> str:
    """Return the JSON type of an annotation in words, with the unit that the name of its key has."""
    if get_origin(hint) is Annotated:
        kind, *metas = get_args(hint)
        return _limited(kind, [meta for meta in metas if isinstance(meta, msgspec.Meta)], name)
    if get_origin(hint) is Required:
        return type_text(get_args(hint)[0], name)
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if nullable or kind is not NoneType]
        texts = dict.fromkeys(type_text(kind, name) for kind in kinds)
        return " or ".join(text for text in texts if text != "whole number" or "number" not in texts)
    if get_origin(hint) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(hint) if value != "")
    if hint is Estimate:
        return f"{_unit(name) or 'number'}, [interval](README.md#common-to-all)"
    if hint is np.ndarray:
        return f"list of {_unit(name) or 'numbers'}"
    arguments = get_args(hint)
    if get_origin(hint) is tuple and Ellipsis not in arguments:
        return (
            f"list of {len(arguments)}: {', '.join(dict.fromkeys(type_text(one, name) for one in arguments))}"
        )
    if get_origin(hint) in (list, tuple):
        inner = _plural(type_text(arguments[0], name))
        return f"list of {inner}" if inner else "list"
    if (
        hint is dict
        or get_origin(hint) in (dict, Mapping)
        or getattr(get_origin(hint), "__name__", "") == "Mapping"
    ):
        inner = _plural(type_text(arguments[1], name)) if arguments and arguments[1] is not Any else ""
        return f"object of {inner}" if inner else "object"
    if inspect.isclass(hint) and (issubclass(hint, Record) or is_typeddict(hint)):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    if hint is Any:
        return _unit(name)
    return _unit(name) if hint in (float, int) and _unit(name) else _NAMES[hint]


def _plural(text: str) -> str:
    words = {
        "object of texts": "objects of texts",
        "number": "numbers",
        "whole number": "whole numbers",
        "text": "texts",
        "object": "objects",
    }
    first, comma, rest = text.partition(",")
    return words.get(first, first) + comma + rest


def _limited(kind: Any, metas: list[msgspec.Meta], name: str) -> str:
    text = type_text(kind, name)
    for meta in metas:
        if meta.description:
            return meta.description
        if meta.pattern:
            return f"text: {allowed_form(meta.pattern)}"
        low = meta.ge if meta.ge is not None else meta.gt
        high = meta.le if meta.le is not None else meta.lt
        high = high if high is not None and high < _SMALL else None
        if low is not None and low < -_SMALL:
            low = None
        if low is not None and high is not None:
            text += f", {'above ' if meta.gt is not None else ''}{low:g} to {high:g}"
        elif meta.gt is not None and low is not None:
            text += f", above {low:g}"
        elif low is not None and (low > 0 or text == "number") and not name.endswith("_bytes_per_s"):
            text += f", {low:g} or more"
    return text


def _unit(name: str) -> str:
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")


def _rows(keys: list[Key]) -> Iterator[str]:
    """Yield a row for each key; neighbours that differ only by name share one."""
    joined: list[list[Key]] = []
    for key in keys:
        if joined and key.meaning and joined[-1][0][1:] == key[1:]:
            joined[-1].append(key)
        else:
            joined.append([key])
    for alike in joined:
        names = ", ".join(f"`{key.name}`" for key in alike)
        _, kind, default, meaning = alike[0]
        yield f"| {names} | {kind} | {default} | {meaning} |"


def undescribed(kind: Any) -> set[str]:
    """Return the keys of a class that no docstring describes, and the names described that are no keys."""
    keys = keys_of(kind)
    named = set(descriptions(kind)).union(*(descriptions(further) for further in _further_types(kind)))
    hidden = set() if is_typeddict(kind) else {kind.unknown_keys, *kind.given_elsewhere}
    return {key.name for key in keys if not key.meaning} | named - hidden - {key.name for key in keys}


def table(module: str, name: str) -> str:
    """Return what a page shows of a class: its purpose and its keys."""
    kind = class_of(module, name)
    if names := undescribed(kind):
        raise SystemExit(
            f"{module}.{name}: make the keys and the Attributes of its docstring agree in {names}"
        )
    purpose = " ".join(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())
    purpose = textwrap.fill(purpose, 118, break_on_hyphens=False)
    head = "| key | type | default | meaning |\n| --- | --- | --- | --- |"
    return "\n".join([f"#### {name}\n", purpose, "", head, *_rows(keys_of(kind)), ""])


def tables(text: str) -> list[tuple[str, str]]:
    """Return module and name of the classes whose tables a page has."""
    return _TABLE.findall(text)


def with_tables(text: str) -> str:
    """Return a page with its tables as the records are now."""
    own = {name.lower() for _, name in tables(text)}
    pages = {name.lower(): page.name for page in PAGES.glob("*.md") for _, name in tables(page.read_text())}

    def across_pages(link: re.Match[str]) -> str:
        """Link what another page describes."""
        elsewhere = link[1] in pages and link[1] not in own
        return f"]({pages[link[1]]}#{link[1]})" if elsewhere else link[0]

    def written(match: re.Match[str]) -> str:
        rows = re.sub(r"\]\(#(\w+)\)", across_pages, table(match[1], match[2]))
        return f"<!-- keys of {match[1]}.{match[2]} -->\n{rows}<!-- end -->"

    return _TABLE.sub(written, text)


def main() -> None:
    for page in sorted(PAGES.glob("*.md")):
        text = page.read_text()
        if (written := with_tables(text)) != text:
            page.write_text(written)
            print(f"{page.name} is written again", file=sys.stderr)


if __name__ == "__main__":
    main()
