"""Finds facts in which one node differs from most others."""

import math
import operator
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.check.load import load_findings
from earlybird.data import labels
from earlybird.data.check import MIN_JUDGED, NODE, Finding
from earlybird.data.rank_file import OF_LAUNCHERS
from earlybird.data.units import format_bytes

Alike = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class _Fact:
    """A fact that is compared: its key, its name and a likely cause. Amounts differ if they differ by more
    than the minimum effect, because nodes of one kind differ by some pages of memory; only a smaller amount
    is a fault. `none_is` replaces a missing amount."""

    key: str
    name: str
    cause: str
    is_amount: bool = False
    none_is: float = 0.0

    def amount(self, value: Any) -> Any:
        return self.none_is if value is None else value

    def alike(self, min_effect: float) -> "Alike":
        if not self.is_amount:
            return operator.eq
        return lambda one, other: (
            not (self.is_less(one, other, min_effect) or self.is_less(other, one, min_effect))
        )

    def is_less(self, value: Any, most: Any, min_effect: float) -> bool:
        return _is_less(self.amount(value), self.amount(most), min_effect)

    def text(self, value: Any) -> str:
        return _bytes_text(value) if self.key.endswith("_bytes") else _text(value)


_FACTS = (
    _Fact("cores", "cores", "the control group or the batch system allows this job fewer of them", True),
    _Fact(
        "cpu_limit", "CPU limit", "the control group (cpu.max) limits the CPU time of this job", True,
        none_is=math.inf,
    ),
    _Fact("governor", "frequency governor", "set it with cpupower frequency-set -g"),
    _Fact("numa_nodes", "NUMA nodes", "look at the settings of the BIOS"),
    _Fact("memory_bytes", "memory", "a memory module may have failed", True),
    _Fact("huge_pages", "huge pages", "look at vm.nr_hugepages", True),
    _Fact("transparent_huge_pages", "transparent huge pages", "look at /sys/kernel/mm/transparent_hugepage"),
    _Fact(
        "shm_bytes", "/dev/shm",
        "ranks of a node communicate through it; mount it larger (a container: --shm-size)", True,
    ),
    _Fact(
        "single_copy", "single copy between processes",
        "large messages inside this node are copied twice; look at kernel.yama.ptrace_scope, at seccomp and "
        "the capabilities of the container",
    ),
    _Fact("smt", "SMT", "look at the settings of the BIOS and at /sys/devices/system/cpu/smt/control"),
    _Fact("hardware_threads", "hardware threads", "CPUs may be offline: look at lscpu", True),
    _Fact("mpi_version", "MPI library", "look at PATH, LD_LIBRARY_PATH and the modules loaded there"),
    _Fact("device", "network device", "messages take another network than those of the others"),
)  # fmt: skip
# Facts that are named, but no reason to leave a node out.
_REMARKED = {"kernel": "kernel", "mpi_file": "MPI library file"}
_MAX_CHARACTERS = 60
# What is compared of a network interface, and a likely cause.
_OF_INTERFACE = {
    "mtu": (
        "MTU",
        "messages larger than the smallest MTU of their way may be lost; set one value on all nodes",
    ),
    "state": ("state", "look at the cable, the switch port and whether the interface was brought up"),
    "rate_mbit": ("rate", "look at the cable, the switch port and the settings of ethtool"),
    "rate": ("rate", "look at the cable, the switch port and ibstat"),
}
_RATES = ("rate_mbit", "rate")
_UP = ("UP", "ACTIVE")
# Drivers of interfaces inside a node: their number and states differ by what runs there.
_INSIDE_A_NODE = ("bridge", "tun", "veth", "dummy", "openvswitch", "vxlan", "ipip")


def fact_findings(
    hosts: Sequence[str], facts: Sequence[Mapping[str, Any]], min_effect: float
) -> list[Finding]:
    """Return the nodes that differ from more than half of all nodes in other work, facts or settings of the
    MPI."""
    found = load_findings(hosts, facts)
    for fact in _FACTS:
        values = [one.get(fact.key) for one in facts]
        found += [
            Finding(NODE, (hosts[k],), fact.name, *_texts(fact.text, values[k], most), fact.cause)
            for k, most in _minority(values, fact.alike(min_effect))
            if not fact.is_amount or fact.is_less(values[k], most, min_effect)
        ]
    for name, key, texts in _interfaces(facts):
        found += [
            Finding(NODE, (hosts[k],), name, *_texts(_text, texts[k], usual), _OF_INTERFACE[key][1])
            for k, usual in _worse_interfaces(key, texts, min_effect)
        ]
    for name, values in _settings(facts).items():
        cause = "the nodes have different environments; look at what the shells there start with"
        found += [
            Finding(NODE, (hosts[k],), name, *_texts(_text, values[k], most), cause)
            for k, most in _minority(values)
        ]
    return found


def fact_remarks(hosts: Sequence[str], facts: Sequence[Mapping[str, Any]], min_effect: float) -> list[str]:
    """Return remarks on all nodes or on some that are not verdicts."""
    remarks = []
    for key, name in _REMARKED.items():
        for k, most in _minority([one.get(key) for one in facts]):
            value, expected = _texts(_text, facts[k].get(key), most)
            remarks.append(f"{hosts[k]} has the {name} {value}, others {expected}")
    if facts and not any(one.get("single_copy", True) for one in facts):
        remarks.append(
            "no node allows single copies between processes: large messages inside a node are copied twice"
        )
    governors = {one.get("governor") for one in facts} - {None}
    if len(governors) == 1 and governors != {"performance"}:
        remarks.append(f"the frequency governor of all nodes is {governors.pop()}: times vary with the load")
    for fact in _FACTS:
        values = [one.get(fact.key) for one in facts]
        most = _majority(values, fact.alike(min_effect))
        # More than others have is no fault of a node; of several nodes it may be that most others lack it.
        more = [
            value for value in values if fact.is_amount and most and fact.is_less(most[0], value, min_effect)
        ]
        if most is None or len(more) > 1:
            remarks += _difference(fact.name, list(map(fact.text, values)))
    for name, key, texts in _interfaces(facts):
        most = _majority(texts)
        others = [text for text in texts if most is None or text != most[0]]
        if len(others) > 1 and not _worse_interfaces(key, texts, min_effect):
            remarks += _difference(name, texts)
    for name, values in _settings(facts).items():
        # A value of its own on every node is the number or address that a launcher has given to it.
        is_numbered = None not in values and len(set(values)) == len(values)
        if _majority(values) is None and not is_numbered:
            remarks += _difference(name, list(map(_text, values)))
    return remarks


def _interfaces(facts: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the name, the key and the values on the nodes of each compared property of network interfaces.

    Only interfaces that most nodes have and that lead to other nodes are compared. A node that lacks one has
    `absent`.
    """
    interfaces = [one.get("interfaces", {}) for one in facts]
    carrying = {one.get("device") for one in facts}
    counts = Counter(name for one in interfaces for name in one)
    for name in sorted(name for name, count in counts.items() if 2 * count > len(facts)):
        drivers = {one[name].get("driver") for one in interfaces if name in one}
        if drivers & set(_INSIDE_A_NODE) and name not in carrying:
            continue
        for key, (what, _) in _OF_INTERFACE.items():
            # Without a state there is no interface; other values may be unknown, which is no difference.
            texts = [_interface_text(key, one.get(name, {"state": "absent"}).get(key)) for one in interfaces]
            known = Counter(text for text in texts if text is not None).most_common(1)
            if known:
                yield f"{what} of {name}", key, [text or known[0][0] for text in texts]


def _worse_interfaces(key: str, texts: Sequence[str], min_effect: float) -> list[tuple[int, str]]:
    """Return (position, value of others) of the values that are at fault.

    A rate is at fault if it is less than that of the upper half. Other values are at fault if they differ
    from that of most nodes; without a majority, interfaces that are down are at fault if others are up, and
    otherwise all values: nodes with different MTUs do not work together, whichever of them is intended.
    """
    if len(texts) < MIN_JUDGED:
        return []
    rates = [_leading_number(text) for text in texts] if key in _RATES else []
    if rates and not any(map(math.isnan, rates)):
        usual = statistics.median_high(rates)
        return [
            (k, texts[rates.index(usual)])
            for k, rate in enumerate(rates)
            if _is_less(rate, usual, min_effect)
        ]
    if _majority(texts) is not None:
        return _minority(texts)
    up = [text for text in texts if key == "state" and text.upper() in _UP]
    return [
        (k, up[0] if up else Counter(other for other in texts if other != text).most_common(1)[0][0])
        for k, text in enumerate(texts)
        if not up or text not in up
    ]


def _leading_number(text: str) -> float:
    """Return 100 for `100 Gb/sec (4X EDR)`; NaN for other texts."""
    match = re.match(r"[0-9]+(\.[0-9]+)?", text)
    return float(match.group()) if match else math.nan


def _interface_text(key: str, value: Any) -> str | None:
    if value is None:
        return None
    return f"{value:g} Mbit/s" if key == "rate_mbit" else str(value)


def _settings(facts: Sequence[Mapping[str, Any]]) -> dict[str, list[str | None]]:
    """Return the values of every variable on the nodes, None where it is not set."""
    settings = [one.get("settings", {}) for one in facts]
    return {
        name: [_normal(name, one.get(name)) for one in settings]
        for name in sorted({name for one in settings for name in one})
        if not name.startswith(OF_LAUNCHERS)
    }


def _normal(name: str, value: str | None) -> str | None:
    """Return a list of folders without the empty entries that launchers leave when they add folders to it."""
    if value is None or not name.endswith("PATH"):
        return value
    return ":".join(folder for folder in value.split(":") if folder) or None


def _difference(name: str, texts: Sequence[str]) -> list[str]:
    counts = Counter(texts).most_common()
    parts = [f"{text} on {labels.counted(count, 'node')}" for text, count in counts]
    return [f"nodes differ in {name}: {labels.listed_briefly(parts)}"] if len(counts) > 1 else []


def _majority(values: Sequence[Any], alike: Alike = operator.eq) -> list[Any] | None:
    """Return the value of more than half, in a list, because it may be None; None if there is none."""
    for value in values:
        if 2 * sum(alike(other, value) for other in values) > len(values):
            return [value]
    return None


def _minority(values: Sequence[Any], alike: Alike = operator.eq) -> list[tuple[int, Any]]:
    """Return (position, value of most) of the values that differ from that of most; empty for two values,
    which have no majority."""
    most = _majority(values, alike)
    if most is None or len(values) < 3:
        return []
    return [(k, most[0]) for k, value in enumerate(values) if not alike(value, most[0])]


def _is_less(value: Any, most: Any, min_effect: float) -> bool:
    return (value or 0) < (most or 0) * (1 - min_effect)


def _texts(text: Callable[[Any], str], value: Any, most: Any) -> tuple[str, str]:
    """Return both values in a line each; of long values only the part in which they differ."""
    one, other = text(value), text(most)
    if max(len(one), len(other)) <= _MAX_CHARACTERS:
        return one, other
    pairs = enumerate(zip(one, other, strict=False))
    alike = next((k for k, (a, b) in pairs if a != b), min(len(one), len(other)))
    start = max(alike - _MAX_CHARACTERS // 3, 0)
    return _part(one, start), _part(other, start)


def _part(text: str, start: int) -> str:
    end = start + _MAX_CHARACTERS
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}" or "(none)"


def _text(value: Any) -> str:
    if value is None or value == "":
        return "(none)"
    if isinstance(value, bool):
        return "works" if value else "forbidden"
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _bytes_text(value: Any) -> str:
    return "(none)" if value is None else format_bytes(round(value))
