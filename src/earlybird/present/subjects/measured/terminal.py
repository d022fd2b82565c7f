"""Prints the results of a run for `measure`: a table for each kernel, JSON, CSV, or the columns of OSU."""

from collections.abc import Sequence

from earlybird.compare.results import merge_means, ordered, results
from earlybird.compare.trees import verify, with_trees
from earlybird.data import labels
from earlybird.data.collective_algorithms import DEFAULT
from earlybird.data.results import Result
from earlybird.data.run import Run, Sample
from earlybird.data.statistics import MEDIAN, Statistic
from earlybird.interop.osu_tables import osu_tables
from earlybird.present.core.parts import grouped
from earlybird.present.render.data import print_data
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import fits, print_line, print_table, print_text
from earlybird.present.subjects.measured.columns import compares_mpis, results_table
from earlybird.present.subjects.measured.remarks import remarks
from earlybird.present.subjects.motifs.answer import slower_text
from earlybird.present.subjects.motifs.tables import scaling_tables


def print_run(run: Run, samples: Sequence[Sample], format: str, statistic: Statistic = MEDIAN) -> None:
    """Print the samples of a run; most tables have no column for the MPI, and each of several has its
    own."""
    mpis = dict.fromkeys(sample.config.get("mpi", "") for sample in samples)
    compares = all(compares_mpis(sample.kernel) for sample in samples)
    if format != "table" or len(mpis) == 1 or compares:
        print_samples(run, samples, format, statistic)
        return
    for mpi in mpis:
        print_line()
        print_line(f"{labels.flavour(mpi)}:")
        of_mpi = [sample for sample in samples if sample.config.get("mpi", "") == mpi]
        print_samples(run, of_mpi, format, statistic)


def print_samples(run: Run, samples: Sequence[Sample], format: str, statistic: Statistic = MEDIAN) -> None:
    """Print the results of `samples`, and a warning for every forced algorithm that did not run."""
    verifications = verify(samples, run.launches())
    for verification in verifications.values():
        if contradiction := verification.contradiction():
            note(f"warning: {contradiction}; its times are those of another algorithm")
    measured = ordered(with_trees(results(samples, statistic=statistic), verifications))
    rows = [result.row() for result in measured]
    if format == "osu":
        print_osu(samples)
    elif not print_data(format, {"run": str(run.path), "id": run.id, "points": rows}, rows):
        for kernel, of_kernel in grouped(merge_means(measured), lambda result: result.kernel).items():
            _print_kernel(run, of_kernel, [sample for sample in samples if sample.kernel == kernel])


def _print_kernel(run: Run, results: Sequence[Result], samples: Sequence[Sample]) -> None:
    """Print the table of the results of one kernel, and the lines below it."""
    kernel, same = results[0].kernel, ""
    table = results_table("", results)
    if not fits(table):
        same, table = table.split()
    print_line()
    print_line(f"{kernel}: {same}" if same else kernel)
    print_table(table)
    for line in filter(None, [*remarks(run, results, samples), slower_text(samples)]):
        print_line(line)
    for table in scaling_tables(results):
        print_line()
        print_line(table.caption)
        print_table(table)


def print_osu(samples: Sequence[Sample]) -> None:
    """Print the table of osu_latency or, of the one requested algorithm, of a collective."""
    tables = osu_tables(samples)
    requested = [table for table in tables if table.config.get("method") != DEFAULT] or tables
    for table in requested:
        print_text(table.text)
