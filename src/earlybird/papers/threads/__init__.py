"""The article on MPI_THREAD_MULTIPLE of the MPICH project: message rates of threads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from earlybird.data import labels
from earlybird.data.contexts import has_contexts
from earlybird.data.methods import CONTEXTS, MSGRATE_METHODS, PER_THREAD, SHARED
from earlybird.data.results import Result
from earlybird.measure.groups import Options, Resources, cores_per_rank, hangs_with_contexts
from earlybird.measure.msgrate import MSGRATE_OPTIONS, WINDOW, msgrate_groups
from earlybird.papers.page import chapter_of, crowded_text, only_runs_of, runs_of
from earlybird.papers.paper import NOT_MEASURED, Paper, Row, Step
from earlybird.papers.place import outermost_level
from earlybird.present.core.notation import interval_text, millions
from earlybird.present.core.parts import Chapter
from earlybird.present.core.table import Table, table_of
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.subjects.messages.figures import rate_figures
from earlybird.present.subjects.messages.rates import (
    METHODS,
    MessageRates,
    contexts,
    message_rates,
    rate,
    threads,
)

NAME = "threads"
_THREADS = (1, 2)
_PAPER_LEVEL = "inter_node"
_SETUP = (
    "Article: MPICH 4.2.1 and Intel MPI 2021.14 between two nodes of JLSE (Intel Skylake), 50 windows of "
    f"{WINDOW} messages of 8 bytes, one run each. Here medians over iterations and launches; a thread's rate "
    "is over its own time, the total over that of the last thread."
)
_HELP = {
    "threads": "Threads per rank, such as 1,2,4.  [default: 1,2]",
    "levels": "intra_socket, inter_socket or inter_node.  [default: the outermost available]",
}
_TAKES = tuple(replace(option, help=_HELP[option.name]) for option in MSGRATE_OPTIONS if option.name in _HELP)


# A run, the family of an MPI, and the rates of it.
_Measured = tuple[MeasuredRun, str, MessageRates]


@dataclass(frozen=True)
class _Run:
    """A run of the article: the MPI's family, and the methods here that correspond to it with one and with
    two threads; and the printed rates of one thread, of each of two, and of both."""

    family: str
    what: str
    alone: str
    together: str
    printed: tuple[str, str, str, str]

    @property
    def figure(self) -> str:
        return f"{labels.flavour(self.family)}, {self.what}"

    @property
    def quantities(self) -> list[tuple[str, int, int | None]]:
        """Return the description of each printed rate, with the threads, and the number of the thread that
        has it."""
        return [
            ("one thread", 1, None),
            ("two threads, thread 0", 2, 0),
            ("two threads, thread 1", 2, 1),
            ("two threads together", 2, None),
        ]

    def rows(self, measured: Sequence[_Measured]) -> list[Row]:
        found = []
        for (quantity, count, number), printed in zip(self.quantities, self.printed, strict=True):
            method = self.alone if count == 1 else self.together
            like = [
                (run, series, result)
                for run, family, series in measured
                if family == self.family
                for result in series.results
                if (result.method, threads(result)) == (method, count)
                # With contexts there is a further run of `shared`, to compare with.
                and (method == CONTEXTS or not contexts(result))
            ]
            rows = [
                Row(self.figure, quantity, printed, value, _note(run, series, result, number), series.label)
                for run, series, result in like
                if (value := _rate_text(result, number))
            ]
            found += rows or [Row(self.figure, quantity, printed, note=f"{NOT_MEASURED}: {self._without}")]
        return found

    @property
    def _without(self) -> str:
        further = " and contexts on it" if self.together == CONTEXTS else ""
        return f"needs {labels.flavour(self.family)}{further} (--mpi {self.family})"


_RUNS = (
    _Run("mpich", "one communicator", SHARED, SHARED, ("3.44", "0.40", "0.38", "0.78")),
    _Run("mpich", "a communicator and context each", PER_THREAD, CONTEXTS, ("3.64", "3.35", "3.31", "6.67")),
    _Run("intel", "one communicator", SHARED, SHARED, ("3.12", "0.73", "0.73", "1.46")),
    _Run("intel", "a communicator and context each", PER_THREAD, CONTEXTS, ("3.60", "2.91", "2.67", "5.58")),
)


def _rate_text(result: Result, number: int | None) -> str:
    """Return the rate of all threads or of one; "" if the run has no times of threads."""
    if number is None:
        return millions(rate(result).value)
    of_threads = result.figures.get("thread_rates_per_s") or ()
    return millions(of_threads[number]) if number < len(of_threads) else ""


def _note(run: MeasuredRun, series: MessageRates, result: Result, number: int | None) -> str:
    level = series.setting[0]
    notes = [interval_text(rate(result), millions) if number is None else ""]
    if level != _PAPER_LEVEL:
        notes.append(f"{labels.level(level)} (article: {labels.level(_PAPER_LEVEL)})")
    if result.oversubscribed:
        notes.append(crowded_text("threads", run))
    return "; ".join(filter(None, notes))


def _measured(material: Material) -> Iterator[_Measured]:
    """Yield the runs that reproduce the article, each with the family of an MPI and its rates."""
    for run in runs_of(material, NAME):
        for series in message_rates(replace(material, runs=(run,))):
            mpi = str(series.results[0].config.get("mpi", ""))
            yield run, run.family(mpi) or mpi, series


def _plan(options: Options, resources: Resources, mpi: str) -> list[Step]:
    level = outermost_level(options, resources)
    allowed = has_contexts(resources.family) and not hangs_with_contexts(level, resources)
    methods = tuple(method for method in MSGRATE_METHODS if method != CONTEXTS or allowed)
    chosen = options.changed(levels=(level,), threads=options.threads or _THREADS, methods=methods)
    return [Step("msgrate", msgrate_groups(chosen, resources, mpi))]


def _remarks(options: Options, resources: Resources) -> list[str]:
    level = outermost_level(options, resources)
    notes = []
    most = max(options.threads or _THREADS)
    if (cores := cores_per_rank(level, resources)) < most:
        notes.append(
            f"a rank has {cores} of the cores for its {most} threads: their samples are oversubscribed"
        )
    if not has_contexts(resources.family):
        notes.append(
            f"{labels.flavour(resources.family or 'this MPI')} has no contexts that a program can request: "
            "the runs with contexts are left out"
        )
    elif hangs_with_contexts(level, resources):
        notes.append("no contexts: MPICH hangs in MPI_Init with them between nodes of a virtual cluster")
    return notes


def _rows(material: Material) -> list[Row]:
    measured = list(_measured(material))
    return [row for run in _RUNS for row in run.rows(measured)]


def _all_rates(measured: Sequence[_Measured]) -> Table:
    """Return every measured rate, with the rate of each thread."""
    items = [(series, result) for _, _, series in measured for result in series.results]
    return table_of(
        "Message rates of all threads and of each, million per second",
        items,
        {
            "MPI": lambda item: item[0].label,
            "threads": lambda item: str(threads(item[1])) + " *" * item[1].oversubscribed,
            "method": lambda item: METHODS.get(item[1].method, item[1].method),
            "all": lambda item: millions(rate(item[1]).value),
            "interval": lambda item: interval_text(rate(item[1]), millions),
            "of each thread": lambda item: ", ".join(
                map(millions, item[1].figures.get("thread_rates_per_s") or ())
            ),
        },
    )


def _chapter(material: Material) -> Chapter:
    measured = list(_measured(material))
    return chapter_of(
        PAPER,
        _rows(material),
        lines=[_SETUP],
        figures=rate_figures(message_rates(only_runs_of(material, NAME)), "paper-rate"),
        tables=[_all_rates(measured)] if measured else [],
    )


PAPER = Paper(
    NAME,
    "communicators and contexts per thread with MPI_THREAD_MULTIPLE",
    "the MPICH article",
    0,
    {
        "MPICH, one communicator": "one and two threads on MPI_COMM_WORLD",
        "MPICH, contexts": "a communicator and a context (VCI) per thread",
        "Intel MPI, one communicator": "the same with Intel MPI",
        "Intel MPI, contexts": "its thread-split mode",
    },
    _TAKES,
    (120.0, 40.0),
    _plan,
    _remarks,
    _rows,
    _chapter,
    "The values are rates in million messages per second.",
)
