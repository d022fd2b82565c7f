"""Machine, MPI and placement of each run, and the quality of each measurement."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from earlybird.analysis.disturbances import noise_remedy
from earlybird.analysis.link_limits import EXCHANGE_LIMIT_SHARE, LIMIT_SHARE, limited_samples
from earlybird.data import clocks, labels
from earlybird.data.kernels import kernel_of
from earlybird.data.layout import level_phrase
from earlybird.data.pattern import Pattern
from earlybird.data.run import Sample
from earlybird.data.units import format_bytes
from earlybird.present.core.parts import Light, grouped
from earlybird.present.core.table import Column, Table
from earlybird.present.core.text import crowd
from earlybird.present.material import MeasuredRun

MAX_PLACEMENTS = 3  # listed per run
_INSIDE = {"intra-node": "within a node", "inter-node": "between nodes"}  # transports


def machine_text(machine: Mapping[str, Any]) -> str:
    """Return `node7 (AMD EPYC 9654, 96 cores, 2 sockets)` from the keys present in the file."""
    inside = [str(machine["cpu_model"])] if machine.get("cpu_model") else []
    whole = {key: value for key, value in machine.items() if type(value) is int}
    inside += [labels.counted(whole[f"{key}s"], key) for key in ("core", "socket") if f"{key}s" in whole]
    if "memory_bytes" in whole:
        inside.append(f"{format_bytes(whole['memory_bytes'])} memory")
    name = str(machine.get("host") or "unnamed machine")
    return f"{name} ({', '.join(inside)})" if inside else name


def mpi_text(launch: Mapping[str, Any]) -> str:
    """Return `MPICH 4.3.0` for a launch."""
    return f"{labels.flavour(str(launch.get('flavour', '')))} {launch.get('version') or ''}".strip()


def started_text(run: MeasuredRun) -> str:
    """Return the date of a run as `21 November 2026, 01:30`, or the text in the file if it is not a date."""
    text = str(run.header.get("started", ""))
    try:
        return f"{datetime.fromisoformat(text):%d %B %Y, %H:%M %Z}".lstrip("0").strip()
    except ValueError:
        return text


def run_line(run: MeasuredRun) -> str:
    """Describe a run in one line: machine, MPI, transport, placement and date."""
    parts = [machine_text(run.machine)]
    for name, same_mpi in grouped(run.launches, mpi_text).items():
        how = []
        for key in ("transport", "launcher", "thread_level", "network"):
            values = sorted(
                {_INSIDE.get(text := str(launch[key]), text) for launch in same_mpi if launch.get(key)}
            )
            before = "" if key == "network" else key.replace("_", " ") + " "
            how += [before + labels.listed(values)] if values else []
        parts.append(f"{name} ({', '.join(how)})" if how else name)
    return f"{run.name}: " + "; ".join([*parts, *_placements_text(run), *filter(None, [started_text(run)])])


def _placements_text(run: MeasuredRun) -> list[str]:
    """Return a few placements in the order of their ranks, with the number of the others."""
    num_ranks = {placement_text(launch): len(launch.get("placement") or ()) for launch in run.launches}
    placements = sorted(num_ranks.keys() - {""}, key=lambda text: (num_ranks[text], text))
    if len(placements) <= MAX_PLACEMENTS:
        return placements
    first = placements[: MAX_PLACEMENTS - 1]
    others = labels.counted(len(placements) - len(first), "other placement")
    return [*first, f"{others} up to {placements[-1]}"]


def placement_text(launch: Mapping[str, Any]) -> str:
    """Return `4 ranks on 1 node, binding core`; "" if the launch has no placement."""
    placement = [entry for entry in launch.get("placement") or () if isinstance(entry, dict)]
    if not placement:
        return ""
    nodes = len({str(entry.get("node", entry.get("host"))) for entry in placement})
    binding = f", binding {launch['binding']}" if launch.get("binding") else ""
    return f"{labels.counted(len(placement), 'rank')} on {labels.counted(nodes, 'node')}{binding}"


def run_table(run: MeasuredRun) -> Table:
    """Return a row for each key of run.json and of the first launch of each flavour."""
    rows = [(key, value) for key, value in run.header.items() if key not in ("machine", "schema")]
    rows += [(f"machine: {key}", value) for key, value in run.machine.items()]
    first = {str(launch.get("flavour", "")): launch for launch in reversed(run.launches)}
    for name, launch in reversed(first.items()):
        rows += [(f"{labels.flavour(name)}: {key}", launch[key]) for key in launch if key != "flavour"]
    columns = [Column("key", lambda row: row[0]), Column("value", lambda row: _flat(row[1]))]
    return Table(f"Provenance of {run.name}", columns, rows)


def samples_table(lights: Sequence[Light]) -> Table:
    """Return the state of the samples of each measurement."""
    columns = [
        Column("measurement", lambda light: light.what, left=True),
        Column("samples", lambda light: light.samples),
        Column("noisy", lambda light: light.noisy),
        Column("oversubscribed", lambda light: light.oversubscribed),
        Column("link-limited of these", lambda light: light.link_limited or "", optional=True, default="0"),
        Column("wrong data", lambda light: light.wrong),
    ]
    return Table("Samples of each measurement", columns, lights)


def lights(run: MeasuredRun, several: bool, patterns: Iterable[Pattern] = ()) -> list[Light]:
    """Return a light for each MPI, kernel and level of a run; `several` runs are distinguished by name."""
    limited = {id(sample) for sample in limited_samples(run.samples, run.launches, patterns)}

    def what(sample: Sample) -> str:
        mpi, level = (str(sample.config.get(key, "")) for key in ("mpi", "level"))
        kernel = kernel_of(sample.kernel).title
        parts = [labels.flavour(mpi), kernel, level_phrase(level) if level else ""]
        return f"{run.name}: " * several + " ".join(part for part in parts if part)

    return [
        Light(
            measurement,
            len(samples),
            noisy=sum(not sample.converged for sample in samples),
            oversubscribed=sum(sample.oversubscribed for sample in samples),
            wrong=sum(not sample.validated for sample in samples),
            link_limited=sum(id(sample) in limited for sample in samples),
        )
        for measurement, samples in grouped(run.samples, what).items()
    ]


def remedies(runs: Sequence[MeasuredRun], shown: Sequence[Light]) -> list[str]:
    """Return the remedies for the lights that are not green, each once."""
    texts = []
    if any(light.wrong for light in shown):
        texts.append(
            "Wrong data: received messages differ from the sent ones. Do not use these values; try another "
            "MPI or transport."
        )
    if any(light.noisy for light in shown):
        texts += _noise_remedies(runs)
    if any(light.of_shared_cores for light in shown):
        texts.append(
            f"Oversubscribed: more {crowd_text(runs)} than cores. Waiting ranks yield, so the times include "
            f"context switches. To avoid this, use no more {crowd_text(runs)} than cores."
        )
    if any(light.link_limited for light in shown):
        shares = (
            f"at least {labels.percent(LIMIT_SHARE)}, for exchanges {labels.percent(EXCHANGE_LIMIT_SHARE)}"
        )
        texts.append(
            f"Link-limited: there were {crowd('ranks')}, but the bytes of these samples kept a virtual "
            f"link busy for most of the time ({shares}), so these samples measure the link."
        )
    clock_doubts = [text for run in runs if (text := clocks.doubt(run.samples))]
    texts += [
        f"{labels.capital(text)}: compare larger messages, or measure again while nodes and network are idle."
        for text in dict.fromkeys(clock_doubts)
    ]
    return texts


def _noise_remedies(runs: Sequence[MeasuredRun]) -> list[str]:
    """Return a sentence for each remedy, with the measurements that it applies to."""
    names_of: dict[str, list[str]] = {}
    for run in runs:
        if noisy := [light.what for light in lights(run, len(runs) > 1) if light.noisy]:
            names_of.setdefault(noise_remedy(run.machine), []).extend(noisy)
    return [f"Noisy ({labels.listed_briefly(names)}): {remedy}." for remedy, names in names_of.items()]


def crowd_text(runs: Sequence[MeasuredRun]) -> str:
    """Name what exceeded the number of cores."""
    workers = {
        kernel_of(sample.kernel).workers for run in runs for sample in run.samples if sample.oversubscribed
    }
    return workers.pop() if len(workers) == 1 else "ranks or threads"


def _flat(value: Any) -> str:
    """Return a value as one line of text, nested objects as `key=value`."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={_flat(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(_flat(item) if not isinstance(item, dict) else f"[{_flat(item)}]" for item in value)
    return str(value)
