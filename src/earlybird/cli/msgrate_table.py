"""The table of the suite `msgrate`: messages per second of each method and thread count."""

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
_MAX_LISTED = 4  # threads whose rates are listed individually


def msgrate_values(samples: Sequence[Sample], shared: Sequence[Sample]) -> dict[str, Any]:
    """Values of one method at one point: its rates, and their ratio to `shared`, the samples of one
    communicator for all threads at that point; the ratio is None if no launch measured both."""
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
    """Sort key of a row: methods with contexts after those without, processes last."""
    method = (
        MSGRATE_METHODS.index(row["method"]) if row["method"] in MSGRATE_METHODS else len(MSGRATE_METHODS)
    )
    point = row["level"], row["size_bytes"], row["window"], row["threads"]
    return *point, row["method"] == PROCESSES, row["vcis"] or 0, method


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
    """Lines to print below the table of `rows`."""
    remarks = [
        "Mmsg/s: messages of all threads divided by the time until the last one is received; per thread: "
        "messages of one thread divided by the time of that thread"
    ]
    if any(row["over_shared"] is not None for row in rows):
        remarks.append(
            "over shared: speed-up over one communicator for all threads; median of the ratios of times "
            "measured alternately in one launch"
        )
    oversubscribed = [row["threads"] for row in rows if row["oversubscribed"]]
    if oversubscribed:
        cores = run.header.get("machine", {}).get("cores")
        available = f" ({counted(cores, 'core')} here)" if isinstance(cores, int) else ""
        remarks.append(
            f"oversubscribed: from {counted(min(oversubscribed), 'thread')} per rank on there are more "
            "threads "
            f"than cores{available}. The threads take turns, so these rows cannot show what threads that "
            "send at the same time lose to locks or gain from contexts"
        )
    return remarks + _without_contexts(run, rows)


def _without_contexts(run: Run, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Reasons why some thread counts have no row with contexts."""
    several = {row["threads"] for row in rows if row["method"] == PER_THREAD and row["threads"] > 1}
    with_contexts = {row["threads"] for row in rows if row["method"] == CONTEXTS}
    launches = run.launches()
    versions = {str(launch.get("library_version", "")).split(" ")[0] for launch in launches}
    if several and "Open" in versions:
        return [f"no {CONTEXTS}: Open MPI has no communication contexts that a program can request"]
    if several and "MPICH" in versions and any(launch.get("network") for launch in launches):
        return [f"no {CONTEXTS} between nodes: MPICH hangs with several contexts in a virtual cluster"]
    if with_contexts and several and max(several) > max(with_contexts):
        return [
            f"{CONTEXTS} only up to {max(with_contexts)} threads: this MPI has no more communication contexts"
        ]
    return []


def _of_threads(rates_per_s: Sequence[float] | None) -> str:
    if rates_per_s is None or len(rates_per_s) == 1:
        return ""
    if len(rates_per_s) <= _MAX_LISTED:
        return " ".join(map(_millions, rates_per_s))
    return f"{_millions(min(rates_per_s))} to {_millions(max(rates_per_s))}"


def _millions(rate_per_s: float) -> str:
    return f"{rate_per_s / 1e6:.2f}" if rate_per_s >= 1e6 else f"{rate_per_s / 1e6:.3g}"
