"""What `measure` prints of the suite `msgrate`: the messages per second of each method and number of
threads."""

from collections.abc import Sequence
from typing import Any

from earlybird.compare.methods import paired_ratio
from earlybird.data import units
from earlybird.data.run import Run, Sample, median_of_launches, thread_medians_of_launches
from earlybird.measure.msgrate import CONTEXTS, MSGRATE_METHODS, PER_THREAD, PROCESSES, SHARED
from earlybird.report.words import counted

HEADER = (
    "level",
    "size",
    "threads",
    "method",
    "contexts",
    "Mmsg/s",
    "launches from",
    "to",
    "per thread",
    "over shared",
    "from",
    "to",
    "launches",
    "state",
)
_MOST_NAMED = 4  # threads whose rates are listed one by one


def msgrate_values(samples: Sequence[Sample], shared: Sequence[Sample]) -> dict[str, Any]:
    """Of one method at one point: its rates, and how many times that of `shared`, the samples of one
    communicator for all threads at that point; None where no launch measured both in turn."""
    config = samples[0].config
    threads, window = config["threads"], config["window"]
    medians = [sample.median_s() for sample in samples]
    of_threads = thread_medians_of_launches(samples)
    rates = None if of_threads is None else (window / of_threads).tolist()
    ratio = paired_ratio(shared, samples) if samples[0].method != SHARED else None
    return {
        "method": samples[0].method,
        "threads": threads,
        "window": window,
        "vcis": config.get("vcis"),
        "rate_per_s": threads * window / median_of_launches(samples),
        "slowest_launch_per_s": threads * window / max(medians),
        "fastest_launch_per_s": threads * window / min(medians),
        "thread_rates_per_s": rates,
        "sum_of_thread_rates_per_s": rates and sum(rates),
        "over_shared": ratio and ratio.value,
        "over_shared_low": ratio and ratio.low,
        "over_shared_high": ratio and ratio.high,
        "over_shared_coverage": ratio and ratio.coverage,
    }


def msgrate_order(row: dict[str, Any]) -> tuple:
    """Where a row stands among those of its suite: methods with contexts after those without, processes
    last."""
    method = (
        MSGRATE_METHODS.index(row["method"]) if row["method"] in MSGRATE_METHODS else len(MSGRATE_METHODS)
    )
    place = row["level"], row["size_bytes"], row["window"], row["threads"]
    return *place, row["method"] == PROCESSES, row["vcis"] or 0, method


def msgrate_cells(row: dict[str, Any], state: str) -> list[Any]:
    """A line of the table, in the order of HEADER."""
    ratios = ("over_shared", "over_shared_low", "over_shared_high")
    return [
        row["level"],
        units.format_bytes(row["size_bytes"]),
        row["threads"],
        row["method"],
        row["vcis"] or "",
        *(_millions(row[name]) for name in ("rate_per_s", "slowest_launch_per_s", "fastest_launch_per_s")),
        _of_threads(row["thread_rates_per_s"]),
        *("" if row[name] is None else f"{row[name]:.2f}" for name in ratios),
        row["launches"],
        state,
    ]


def msgrate_remarks(run: Run, rows: Sequence[dict[str, Any]]) -> list[str]:
    """What to know of the table of these rows, a line each, to be printed below it."""
    remarks = [
        "Mmsg/s: the messages of all threads over the time until the last of them is received; per thread: "
        "those of one over its own time"
    ]
    if any(row["over_shared"] is not None for row in rows):
        remarks.append(
            "over shared: how many times the rate of one communicator for all threads; the median of the "
            "ratios of times taken in turn in one launch"
        )
    crowded = [row["threads"] for row in rows if row["oversubscribed"]]
    if crowded:
        cores = run.header.get("machine", {}).get("cores")
        here = f" ({counted(cores, 'core')} here)" if isinstance(cores, int) else ""
        remarks.append(
            f"oversubscribed: from {counted(min(crowded), 'thread')} per rank on there are more threads than "
            f"cores for them{here} and they take turns, so these rows cannot show what threads that send at "
            "the same moment lose to locks or gain from contexts"
        )
    return remarks + _without_contexts(run, rows)


def _without_contexts(run: Run, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Why some numbers of threads have no row with contexts."""
    several = {row["threads"] for row in rows if row["method"] == PER_THREAD and row["threads"] > 1}
    with_contexts = {row["threads"] for row in rows if row["method"] == CONTEXTS}
    launches = run.launches()
    versions = {str(launch.get("library_version", "")).split(" ")[0] for launch in launches}
    if several and "Open" in versions:
        return [f"Open MPI has no communication contexts that a program could ask for: no {CONTEXTS}"]
    if several and "MPICH" in versions and any(launch.get("network") for launch in launches):
        return [f"MPICH hangs with several contexts between nodes of a virtual cluster: no {CONTEXTS} there"]
    if with_contexts and several and max(several) > max(with_contexts):
        return [f"this MPI has at most {max(with_contexts)} communication contexts: {CONTEXTS} ends there"]
    return []


def _of_threads(rates_per_s: Sequence[float] | None) -> str:
    if rates_per_s is None or len(rates_per_s) == 1:
        return ""
    if len(rates_per_s) <= _MOST_NAMED:
        return " ".join(map(_millions, rates_per_s))
    return f"{_millions(min(rates_per_s))} to {_millions(max(rates_per_s))}"


def _millions(rate_per_s: float) -> str:
    return f"{rate_per_s / 1e6:.2f}" if rate_per_s >= 1e6 else f"{rate_per_s / 1e6:.3g}"
