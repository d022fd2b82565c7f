"""Prints the results of a run for `measure`: a table for each kernel, JSON, CSV, or the columns of OSU."""

from collections.abc import Iterable, Sequence

from earlybird.cli import result_tables
from earlybird.cli.common import note, print_csv, print_json, print_table
from earlybird.cli.result_remarks import remarks
from earlybird.compare.results import results
from earlybird.compare.trees import prove, with_trees
from earlybird.data.collective_algorithms import DEFAULT, REDUCE_LOCAL
from earlybird.data.errors import InputError
from earlybird.data.results import Result
from earlybird.data.run import Run, Sample
from earlybird.measure.groups import Group


def print_beside_paper(run: Run) -> None:
    """Print the paper's figures next to those of the run; the page and the formats csv and json have the
    rest."""
    from earlybird.report.material import collect
    from earlybird.report.tables.gillis import brief_paper_tables
    from earlybird.report.views.pipelines import pipelines

    for table in brief_paper_tables(pipelines(collect([run.path]))):
        print(f"\n{table.caption}")
        print_table(table.header, table.rows)


def print_samples(run: Run, samples: Sequence[Sample], format: str) -> None:
    """Print the results of `samples`, and a warning for every forced algorithm that did not run."""
    proofs = prove(samples, run.launches())
    for proof in proofs.values():
        if contradiction := proof.contradiction():
            note(f"warning: {contradiction}; its times are those of another algorithm")
    found = result_tables.ordered(with_trees(results(samples), proofs))
    if format == "json":
        print_json({"run": str(run.path), "id": run.id, "points": [result.row() for result in found]})
    elif format == "csv":
        rows = [result.row() for result in found]
        header = list(dict.fromkeys(key for row in rows for key in row))
        print_csv(header, [[_csv_cell(row.get(key)) for key in header] for row in rows])
    elif format == "osu":
        print_osu(found)
    else:
        for kernel in dict.fromkeys(result.kernel for result in found):
            of_kernel = [result for result in found if result.kernel == kernel]
            print(f"\n{kernel}")
            print_table(*result_tables.table(of_kernel), left=result_tables.LEFT)
            for remark in remarks(run, of_kernel):
                print(remark)


def _csv_cell(value: object) -> object:
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, list) else value


def check_osu(groups: Iterable[Group]) -> None:
    """Raise InputError for several operations, mappings, rank counts or algorithms, which do not fit into one
    column."""
    groups = list(groups)
    points = [point for group in groups for point in group.points if point["operation"] != REDUCE_LOCAL]
    columns = {(point["operation"], point["map_by"], point["ranks"]) for point in points}
    methods = {method for group in groups for method in group.methods}
    if len(columns) > 1 or len(methods - {DEFAULT}) > 1:
        raise InputError(
            "--format osu prints one column: measure one --op, one --map-by, one of --ranks and one "
            "--algorithm"
        )


def print_osu(found: Sequence[Result]) -> None:
    """Print the columns of the OSU benchmarks: latency in us for ping-pong, bandwidth in MB/s (1e6 B/s) for
    contention, the mean over ranks in us of the one requested algorithm for collectives."""
    kernel = found[0].kernel
    titles = {"pingpong": "# Size          Latency (us)", "collective": "# Size       Avg Latency(us)"}
    print(titles.get(kernel, "# Size      Bandwidth (MB/s)"))
    remote = [result for result in found if not result_tables.is_local(result)]
    requested = {result.method for result in remote} - {DEFAULT} or {DEFAULT}
    for result in remote:
        if kernel == "collective" and result.method not in requested:
            continue
        value = {
            "pingpong": result.time_s.value * 1e6,
            "collective": result.figures.get("mean_s", 0.0) * 1e6,
        }.get(kernel, (result.figures.get("bandwidth_bytes_per_s") or 0.0) / 1e6)
        print(f"{result.config['size_bytes']:<10d}{value:>18.2f}")
