"""Chapter 1's facts: which machine, MPI and placement, and how far each measurement can be trusted."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from earlybird.data import clocks
from earlybird.data.pattern import Pattern
from earlybird.data.run import Sample
from earlybird.data.units import format_bytes
from earlybird.report import links, words
from earlybird.report.curves import number_or_none
from earlybird.report.material import MeasuredRun
from earlybird.report.parts import Light, Table

SLOW_GOVERNORS = ("powersave", "ondemand", "conservative", "schedutil")
MAX_PLACEMENTS = 3  # told of a run
KERNELS = {
    "pingpong": "ping-pong",
    "contention": "contention",
    "exchange": "exchange",
    "msgrate": "message rate",
    "collective": "collectives",
}


def machine_words(machine: Mapping[str, Any]) -> str:
    """`node7 (AMD EPYC 9654, 96 cores, 2 sockets)` from what the file says, nothing required."""
    inside = [str(machine["cpu_model"])] if machine.get("cpu_model") else []
    inside += [
        words.counted(machine[key + "s"], key) for key in ("core", "socket") if _whole(machine.get(key + "s"))
    ]
    if _whole(machine.get("memory_bytes")):
        inside.append(f"{format_bytes(machine['memory_bytes'])} memory")
    name = str(machine.get("host") or "a machine without a name")
    return f"{name} ({', '.join(inside)})" if inside else name


def mpi_words(launch: Mapping[str, Any]) -> str:
    """`MPICH 4.3.0` from one launch line."""
    return " ".join(
        word
        for word in (words.flavour(str(launch.get("flavour", ""))), str(launch.get("version") or ""))
        if word
    )


def started_words(run: MeasuredRun) -> str:
    """The date of a run as `21 November 2026, 01:30`, or as the file has it."""
    text = str(run.header.get("started", ""))
    try:
        return f"{datetime.fromisoformat(text):%d %B %Y, %H:%M %Z}".lstrip("0").strip()
    except ValueError:
        return text


def run_line(run: MeasuredRun) -> str:
    """Run, machine, MPI, transport, placement and date in one line."""
    parts = [machine_words(run.machine)]
    launches: dict[str, list[Mapping[str, Any]]] = {}
    for launch in run.launches:
        launches.setdefault(mpi_words(launch), []).append(launch)
    for name, alike in launches.items():
        keys = {
            "transport": "transport ",
            "launcher": "launcher ",
            "thread_level": "thread level ",
            "network": "",
        }
        how = []
        for key, before in keys.items():
            told = dict.fromkeys(str(launch[key]) for launch in alike if launch.get(key))
            how += [before + words.listed(sorted(told))] if told else []
        parts.append(f"{name} ({', '.join(how)})" if how else name)
    parts += _placements_words(run)
    parts += [started_words(run)] if started_words(run) else []
    return f"{run.name}: " + "; ".join(parts)


def _placements_words(run: MeasuredRun) -> list[str]:
    """A few placements, those of fewest ranks first and that of most last, and how many others there are."""
    told = {placement_words(launch): len(launch.get("placement") or ()) for launch in run.launches}
    found = sorted(told.keys() - {""}, key=lambda text: (told[text], text))
    if len(found) <= MAX_PLACEMENTS:
        return found
    first = found[: MAX_PLACEMENTS - 1]
    return [*first, f"{words.counted(len(found) - len(first), 'other placement')} up to {found[-1]}"]


def placement_words(launch: Mapping[str, Any]) -> str:
    """`4 ranks on 1 node bound to core`, as observed where the launch tells it."""
    placement = [place for place in launch.get("placement") or () if isinstance(place, dict)]
    if not placement:
        return ""
    nodes = len({str(place.get("node", place.get("host"))) for place in placement})
    binding = f", binding {launch['binding']}" if launch.get("binding") else ""
    return f"{words.counted(len(placement), 'rank')} on {words.counted(nodes, 'node')}{binding}"


def run_table(run: MeasuredRun) -> Table:
    """Everything run.json and the first launch of each flavour say, a row per key."""
    rows = [[key, _flat(value)] for key, value in run.header.items() if key not in ("machine", "schema")]
    rows += [[f"machine: {key}", _flat(value)] for key, value in run.machine.items()]
    first: dict[str, Mapping[str, Any]] = {}
    for launch in run.launches:
        first.setdefault(str(launch.get("flavour", "")), launch)
    for name, launch in first.items():
        rows += [
            [f"{words.flavour(name)}: {key}", _flat(value)]
            for key, value in launch.items()
            if key != "flavour"
        ]
    return Table(f"Provenance of {run.name}", ["what", "value"], rows)


def lights(run: MeasuredRun, several: bool, patterns: Iterable[Pattern] = ()) -> list[Light]:
    """One light per MPI, kernel and level of a run."""
    limited = {id(sample) for sample in links.limited_samples(run, patterns)}
    groups: dict[tuple, list[Sample]] = defaultdict(list)
    for sample in run.samples:
        config = sample.config
        groups[(str(config.get("mpi", "")), sample.kernel, str(config.get("level", "")))].append(sample)
    return [_light(run.name if several else "", key, samples, limited) for key, samples in groups.items()]


def _light(
    run_name: str, key: tuple[str, str, str], samples: Sequence[Sample], limited: Collection[int]
) -> Light:
    mpi, kernel, level = key
    words_of = [words.flavour(mpi), KERNELS.get(kernel, kernel), words.level(level) if level else ""]
    what = (f"{run_name}: " if run_name else "") + " ".join(word for word in words_of if word)
    return Light(
        what,
        len(samples),
        noisy=sum(not sample.converged for sample in samples),
        oversubscribed=sum(sample.oversubscribed and id(sample) not in limited for sample in samples),
        wrong=sum(not sample.validated for sample in samples),
        link_limited=sum(id(sample) in limited for sample in samples),
    )


def remedies(runs: Sequence[MeasuredRun], shown: Sequence[Light]) -> list[str]:
    """What to do about the lights that are not green, each remedy once."""
    found = []
    if any(light.wrong for light in shown):
        found.append(
            "Wrong data: messages arrived changed; do not use these figures, try another MPI or transport."
        )
    if any(light.noisy for light in shown):
        found += _noise_remedies(runs)
    if any(light.oversubscribed for light in shown):
        found.append(
            f"Oversubscribed: more {crowd_words(runs)} than cores, so waiting ranks yield and the times hold "
            "the switches between them; for figures without that, use no more "
            f"{crowd_words(runs)} than cores."
        )
    if any(light.link_limited for light in shown):
        shares = f"{words.percent(links.LIMIT_SHARE)} or more, of an exchange "
        shares += words.percent(links.EXCHANGE_LIMIT_SHARE)
        found.append(
            "Cores shared, the link the limit: there were more ranks than cores, but the bytes of these "
            f"samples kept a virtual link busy for most of the time ({shares}), so that they tell what the "
            "link does."
        )
    apart = [text for run in runs if (text := clocks.doubt(run.samples))]
    found += [
        f"{words.capital(text)}: compare larger messages, or measure anew while nodes and network are idle."
        for text in dict.fromkeys(apart)
    ]
    return found


def _noise_remedies(runs: Sequence[MeasuredRun]) -> list[str]:
    """A sentence for each advice, with the measurements that it is for."""
    said: dict[str, list[str]] = {}
    for run in runs:
        if noisy := [light.what for light in lights(run, len(runs) > 1) if light.noisy]:
            said.setdefault(noise_advice(run), []).extend(noisy)
    return [f"Noisy ({words.listed_briefly(names)}): {advice}." for advice, names in said.items()]


def crowd_words(runs: Sequence[MeasuredRun]) -> str:
    """What there were more of than cores: threads where those are measured, ranks elsewhere."""
    kernels = {sample.kernel for run in runs for sample in run.samples if sample.oversubscribed}
    of_threads = {"msgrate", "pipeline"}
    return "threads" if kernels <= of_threads else "ranks or threads" if kernels & of_threads else "ranks"


def noise_advice(run: MeasuredRun) -> str:
    """Which setting to change for quieter figures, from what the run says about its machine."""
    machine = run.machine
    advice = ["give more time with a larger --budget"]
    governor = machine.get("governor")
    if governor in SLOW_GOVERNORS:
        advice.append(f"set the frequency governor from {governor} to performance")
    load = load_of(machine)
    if load is not None and load > 0.5:
        advice.append(f"wait until the machine is idle (its load was {load:.1f} at the start)")
    return ", or ".join(advice)


def load_of(machine: Mapping[str, Any]) -> float | None:
    """The load when a run began; None where the file does not tell it."""
    load = machine.get("load")
    return number_or_none(load[0] if isinstance(load, list) and load else load)


def is_loaded(machine: Mapping[str, Any]) -> bool:
    """Whether other work kept every core busy when a run began: less load may be of the run before."""
    load = load_of(machine)
    return load is not None and _whole(machine.get("cores")) and load > machine["cores"]


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _flat(value: Any) -> str:
    """A value as one line of text; nested objects as `key=value` words."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={_flat(item)}" for key, item in value.items())
    if isinstance(value, list):
        return " ".join(_flat(item) if not isinstance(item, dict) else f"[{_flat(item)}]" for item in value)
    return str(value)
