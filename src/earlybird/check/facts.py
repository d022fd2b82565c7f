"""Facts in which one node differs from most others."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earlybird.data import labels
from earlybird.data.check import NODE, Finding
from earlybird.data.units import format_bytes


@dataclass(frozen=True)
class _Fact:
    """A fact that is compared: its key, its name and a likely cause. Of an amount only less counts, by more
    than the minimum effect."""

    key: str
    name: str
    cause: str
    is_amount: bool = False


_FACTS = (
    _Fact("cores", "cores", "the control group or the batch system allows this job fewer of them", True),
    _Fact("cpu_limit", "CPU limit", "the control group (cpu.max) limits the CPU time of this job"),
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
    _Fact("mpi_version", "MPI library", "look at PATH, LD_LIBRARY_PATH and the modules loaded there"),
    _Fact("device", "network device", "messages take another network than those of the others"),
)  # fmt: skip
# Facts that are named, but no reason to leave a node out.
_REMARKED = {"kernel": "kernel", "mpi_file": "MPI library file"}
_MOST_CHARACTERS = 60


def fact_findings(
    hosts: Sequence[str], facts: Sequence[Mapping[str, Any]], min_effect: float
) -> list[Finding]:
    """The nodes that differ from more than half of all nodes in a fact or in a setting of the MPI."""
    found = []
    for fact in _FACTS:
        values = [one.get(fact.key) for one in facts]
        for k, most in _minority(values):
            if fact.is_amount and not _is_less(values[k], most, min_effect):
                continue
            text = _bytes_text if fact.key.endswith("_bytes") else _text
            found.append(Finding(NODE, (hosts[k],), fact.name, *_texts(text, values[k], most), fact.cause))
    settings = [dict(one.get("settings", {})) for one in facts]
    for name in sorted({name for one in settings for name in one}):
        values = [one.get(name) for one in settings]
        cause = "the nodes have different environments; look at what the shells there start with"
        found += [
            Finding(NODE, (hosts[k],), name, *_texts(_text, values[k], most), cause)
            for k, most in _minority(values)
        ]
    return found


def fact_remarks(hosts: Sequence[str], facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is worth knowing of all nodes or of some, but is no verdict."""
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
        if len(set(map(repr, values))) > 1 and _majority(values) is None:
            counts = Counter(_text(value) for value in values).most_common()
            parts = [f"{text} on {labels.counted(count, 'node')}" for text, count in counts]
            remarks.append(f"nodes differ in {fact.name}: {labels.listed_briefly(parts)}")
    return remarks


def _majority(values: Sequence[Any]) -> list[Any] | None:
    """The value of more than half, in a list, because it may be None; None without one."""
    for value in values:
        if 2 * sum(other == value for other in values) > len(values):
            return [value]
    return None


def _minority(values: Sequence[Any]) -> list[tuple[int, Any]]:
    """(position, value of most) of the values that differ from that of most; of two nothing can be said."""
    most = _majority(values)
    if most is None or len(values) < 3:
        return []
    return [(k, most[0]) for k, value in enumerate(values) if value != most[0]]


def _is_less(value: Any, most: Any, min_effect: float) -> bool:
    return (value or 0) < (most or 0) * (1 - min_effect)


def _texts(text: Callable[[Any], str], value: Any, most: Any) -> tuple[str, str]:
    """Both values in a line each; of long ones the part in which they differ."""
    one, other = text(value), text(most)
    if max(len(one), len(other)) <= _MOST_CHARACTERS:
        return one, other
    pairs = enumerate(zip(one, other, strict=False))
    alike = next((k for k, (a, b) in pairs if a != b), min(len(one), len(other)))
    start = max(alike - _MOST_CHARACTERS // 3, 0)
    return _part(one, start), _part(other, start)


def _part(text: str, start: int) -> str:
    end = start + _MOST_CHARACTERS
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}" or "(none)"


def _text(value: Any) -> str:
    if value is None or value == "":
        return "(none)"
    if isinstance(value, bool):
        return "works" if value else "forbidden"
    return f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())


def _bytes_text(value: Any) -> str:
    return "(none)" if value is None else format_bytes(round(value))
