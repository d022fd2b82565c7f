"""Lines below a table of results: what its columns mean, and what this machine or MPI could not show."""

from collections.abc import Callable, Mapping, Sequence

from earlybird.compare.intervals import MEAN_CONFIDENCE
from earlybird.compare.pipelines import longer_delay_rates
from earlybird.data import labels
from earlybird.data.kernels import COLLECTIVE, MSGRATE, PIPELINE, kernel_of
from earlybird.data.methods import CONTEXTS, PER_THREAD
from earlybird.data.paths import paths_texts
from earlybird.data.results import Result
from earlybird.data.run import Run, Sample
from earlybird.data.statistics import statistics_text
from earlybird.present.core.text import crowd
from earlybird.present.subjects.measured.columns import column_of


def remarks(run: Run, results: Sequence[Result], samples: Sequence[Sample] = ()) -> list[str]:
    """Return the lines to print below the table of `results`, all of one kernel and of `samples`."""
    name = results[0].kernel
    columns = kernel_of(name).columns
    lines = meanings(results)
    lines += _REMARKS[name](run, results) if name in _REMARKS else []
    lines += _imported(run, samples)
    if results[0].mean_of_iterations:
        lines.append("values: means over the iterations of all launches")
    if any(column.key == "speed_up" for column in columns):
        lines += _speed_up(results)
    # A single launch with a single value has no interval.
    has_values = all(len(sample.times_s) == 1 for sample in samples) and bool(samples)
    is_single = has_values and all(result.launches == 1 for result in results)
    has_interval = any(column.interval for column in columns)
    return lines + _interval(results) if has_interval and not is_single else lines


def meanings(results: Sequence[Result]) -> list[str]:
    """Return the meaning of the columns of the table of `results` whose head does not explain it."""
    columns = kernel_of(results[0].kernel).columns
    explained = [column for column in columns if column.meaning and column_of(column).is_shown(results)]
    return [f"{column.head}: {column.meaning}" for column in explained]


def _imported(run: Run, samples: Sequence[Sample]) -> list[str]:
    """Return the meaning of the values of another benchmark, and the precision lost where they were
    printed."""
    if not (run.header.get("settings") or {}).get("imported"):
        return []
    known = statistics_text((sample.quantity, sample.statistic) for sample in samples)
    lines = [f"values: {known}"] if known else []
    if rough := [sample.rounding for sample in samples if sample.rounding]:
        values = labels.counted(len(rough), "value")
        lines.append(f"rounded: {values} printed with one digit, by up to {labels.percent(max(rough))}")
    return lines


def _speed_up(results: Sequence[Result]) -> list[str]:
    compared = [result for result in results if result.speed_up]
    if not compared:
        return []
    reference = compared[0].reference
    ratio = f"time of {reference} / time of the method"
    how = (
        f"median of the ratios {ratio}, measured alternately in one launch; the ratio of two "
        f"{'means' if results[0].mean_of_iterations else 'medians'} in this table may differ"
    )
    if through := sorted({result.through for result in compared} - {""}):
        how = (
            f"{ratio}, through {labels.listed(through)}, which the launches of both contain, because this "
            "MPI runs one algorithm per launch"
        )
    return [f"speed-up over {reference}: {how}"]


def _coverage_text(coverage: float) -> str:
    """Return `94%`; with a decimal where it would be rounded to 100 %."""
    return f"{coverage:.0%}" if coverage < 0.995 else f"{min(coverage, 0.999):.1%}"


def _interval(results: Sequence[Result]) -> list[str]:
    if results[0].mean_of_iterations:
        of_speed_up = "; that of a speed-up: of the median, from order statistics of the launches"
        return [
            f"interval: {MEAN_CONFIDENCE:.0%} by Student's t over all iterations; it does not include how "
            f"launches differ{of_speed_up * any(result.speed_up is not None for result in results)}"
        ]
    coverage = {result.launches: result.coverage for result in results}
    several = [
        f"with {count} launches it contains the median in {_coverage_text(coverage[count])} of all cases"
        for count in sorted(coverage)
        if count > 1
    ]
    single = "of the iterations of a single launch; it does not include how launches differ"
    if not several:
        return [f"interval: {single}"]
    others = f"; where there is one launch, {single}" if 1 in coverage else ""
    return [f"interval: from order statistics of the launches; {labels.listed(several)}{others}"]


def _pipeline(run: Run, results: Sequence[Result]) -> list[str]:
    """Return how long a delay must be to show a speed-up, and the paths of libearlybird if they are known."""
    paths = paths_texts(run.launches())
    return [
        *(
            [f"paths of earlybird, by size and partitions, in parts of its starts: {'; '.join(paths)}"]
            if paths
            else []
        ),
        *(
            f"{labels.level(level)}: the delay is too short to show a speed-up; "
            f"--gamma {float(f'{gamma * 1e12:.1e}'):.0f}us/MB shows it"
            for level, gamma in longer_delay_rates(results).items()
        ),
    ]


def _collective(_: Run, results: Sequence[Result]) -> list[str]:
    figures = [result.figures for result in results]
    if all(values.get("verification") == "not verified" and not values["tree_seen"] for values in figures):
        return []
    return [
        "tree: each rank in turn enters late with the smallest message; the ranks that finish late are "
        "below it in the tree (reduce, gather: above it); confirmed: they are those of the requested tree"
    ]


def _message_rate(run: Run, results: Sequence[Result]) -> list[str]:
    lines = []
    results = [result for result in results if "threads" in result.config]
    oversubscribed = [result.config["threads"] for result in results if result.oversubscribed]
    if oversubscribed:
        cores = run.header.get("machine", {}).get("cores")
        available = f" ({labels.counted(cores, 'core')} here)" if isinstance(cores, int) else ""
        lines.append(
            f"oversubscribed: from {labels.counted(min(oversubscribed), 'thread')} per rank on there are "
            f"{crowd()}{available}. The threads take turns, so these rows cannot show what "
            "threads that send at the same time lose to locks or gain from contexts"
        )
    return lines + _without_contexts(run, results)


def _without_contexts(run: Run, results: Sequence[Result]) -> list[str]:
    """Return the reasons why some thread counts have no row with contexts."""
    several, with_contexts = (
        {result.config["threads"] for result in results if result.method == method}
        for method in (PER_THREAD, CONTEXTS)
    )
    several -= {1}
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


_REMARKS: Mapping[str, Callable[[Run, Sequence[Result]], list[str]]] = {
    PIPELINE.name: _pipeline,
    MSGRATE.name: _message_rate,
    COLLECTIVE.name: _collective,
}
