"""Thune et al. 2023: messages that compete for bandwidth, and the staircase model."""

from collections.abc import Iterator
from dataclasses import replace

from earlybird.data import labels
from earlybird.data.comparison import Comparison
from earlybird.data.profile import Profile
from earlybird.data.units import format_bandwidth
from earlybird.measure.groups import Options, Resources, link_of
from earlybird.measure.packing import packing_groups
from earlybird.measure.suites import (
    SUITES,
    completion_groups,
    contention_groups,
    exchange_groups,
    pingpong_groups,
)
from earlybird.papers.page import chapter_of, crowded_text, only_runs_of, own_profiles, settings_of, step_of
from earlybird.papers.paper import NOT_MEASURED, Paper, Row, Step
from earlybird.papers.thune.experiments import (
    FIGURE_3,
    MESH,
    cores_per_socket,
    exchanges,
    sweep_groups,
    sweep_layout,
)
from earlybird.papers.thune.published import (
    COUNTS,
    MACHINES,
    TABLE_I_LEVELS,
    VERIFICATIONS,
    Verification,
    bandwidth_gbs,
    latency_us,
    machines,
    realistic,
)
from earlybird.papers.thune.sweep import Sweep, sweep_figures, sweep_table, sweeps
from earlybird.present.core.notation import percent_text
from earlybird.present.core.parts import Chapter
from earlybird.present.material import Material, MeasuredRun

NAME = "thune"
_SETUP = (
    "Paper: Open MPI 4.0.5 on four machines with two sockets; times are means of ten iterations, here "
    "medians over iterations, then launches. Table I gives tau of N = 2 and BW(N) of large messages. The "
    "chapters on messages and exchanges of this report draw BW(N), as figure 1, and the times of each rank, "
    "as figures 4 and 5; `--profile thune-epyc-rome` and the others predict with Table I itself."
)
_MESSAGES = "messages"
_PRINTED_PACKING = "indexed"  # the layout of data whose costs the page has
_HELP = {
    "sizes": "Sizes s of figure 3, such as 2..2MiB.  [default: 2 B to 2 MiB]",
    "competitors": "Numbers N of concurrent receivers of Table I.  [default: 1, 2, 4 .. all cores]",
}
_TAKES = tuple(
    replace(option, help=_HELP[option.name]) for option in SUITES["contention"].takes if option.name in _HELP
)


def _plan(options: Options, resources: Resources, mpi: str) -> list[Step]:
    """Return the parameters of Table I, to which a profile is fitted, and the exchanges to predict."""
    of_messages = options.changed(sizes_bytes=None)
    messages = [
        group
        for groups in (pingpong_groups, contention_groups, completion_groups)
        for group in groups(of_messages, resources, mpi)
    ]
    steps = [
        Step(_MESSAGES, messages, is_fitted=True, share=3.0),
        Step(FIGURE_3, sweep_groups(options, mpi), share=2.0),
    ]
    if resources.library is not None:  # drawn times have no packing
        # Emptying large caches takes most of the time: --quick has only what the page prints.
        of_packing = of_messages.changed(packings=(_PRINTED_PACKING,)) if options.quick else of_messages
        packing = packing_groups(of_packing, resources, mpi)
        steps.append(Step(packing[0].kernel, packing, is_fitted=True, share=0.5))
    for exchange in exchanges(resources):
        layout = exchange.layout
        link = link_of("inter_node", resources) if layout.num_nodes > 1 else None
        with_empty = resources.shares_cores(layout)
        groups = exchange_groups(exchange.pattern, layout, mpi, link, with_empty=with_empty)
        steps.append(Step(exchange.step, groups, (exchange.pattern, layout), share=0.5))
    return steps


def _remarks(options: Options, resources: Resources) -> list[str]:
    notes = []
    if "inter_socket" not in resources.cores:
        notes.append("one socket: no exchanges across sockets, and no figure 5; a machine with two has them")
    if "inter_node" not in resources.cores:
        notes.append(
            "one node: no exchanges between nodes; give --hosts, --launcher srun or --launcher cluster:NAME"
        )
    if resources.shares_cores(sweep_layout()):
        cores = labels.counted(cores_per_socket(resources), "core")
        notes.append(f"figure 3 has 6 ranks on a socket of {cores}: its times include the scheduler's")
    return notes


def _rows(material: Material) -> list[Row]:
    own = only_runs_of(material, NAME)
    return _rows_of(own, sweeps(own))


def _rows_of(material: Material, measured: list[Sweep]) -> list[Row]:
    """Return the rows of the runs that reproduce the paper, with their sweeps."""
    profiles = own_profiles(material)
    rows = [*_table_i(profiles), *_figure_3(measured)]
    for verification in VERIFICATIONS:
        rows += _verified(verification, material)
    rows.append(
        Row(
            "section III-D",
            "total relative error between nodes as the text has it, staircase",
            "12.8%",
            note="Table II has 12.9%",
        )
    )
    rows += _meshes(material)
    rows += _packing(profiles)
    largest = realistic()[-1]
    accuracy = Row(
        "section VI",
        f"accuracy with {largest.ranks} processes",
        "83.8%",
        note=f"1 - {largest.error} of Table IV",
    )
    return [*rows, accuracy]


def _table_i(profiles: list[tuple[Profile, str]]) -> Iterator[Row]:
    """Yield the parameters of the four machines, and the parameters of this one."""
    for level in TABLE_I_LEVELS:
        columns = [("tau, us", latency_us, ())] + [
            (f"{name}, GB/s", bandwidth_gbs, (count,)) for name, count in COUNTS.items()
        ]
        for name, text_of, arguments in columns:
            printed = " / ".join(text_of(one, level, *arguments) for one in machines())
            quantity = f"{labels.level(level)}, {name}"
            here = [(label, text_of(one, level, *arguments)) for one, label in profiles]
            rows = [Row("Table I", quantity, printed, text, mpi=label) for label, text in here if text]
            count = next(iter(arguments), None)
            cores = f"{labels.counted(count, 'core')} on a socket" if count else "a run"
            yield from rows or [Row("Table I", quantity, printed, note=_without(level, cores))]


def _without(level: str, otherwise: str) -> str:
    needs = {"inter_socket": "a machine with two sockets", "inter_node": "two nodes"}.get(level, otherwise)
    return f"{NOT_MEASURED}: needs {needs}"


def _figure_3(measured: list[Sweep]) -> Iterator[Row]:
    """Yield the errors over the sweep; the paper prints none."""
    quantity = "total relative error over all s, staircase"
    for sweep in measured:
        others = [
            f"{model} {percent_text(sweep.error(model))}" for model in sweep.models if model != "staircase"
        ]
        here = percent_text(sweep.error("staircase")) if "staircase" in sweep.models else ""
        note = "; ".join([*others, *filter(None, [sweep.crowded])])
        yield Row("figure 3", quantity, "very well", here, note, sweep.label)
    if not measured:
        yield Row("figure 3", quantity, "very well", note=f"{NOT_MEASURED}: needs a run and its profile")


def _verified(verification: Verification, material: Material) -> Iterator[Row]:
    """Yield the error of each printed model, of every MPI that replayed the exchange."""
    found = _replays(verification.step, material)
    for model, printed in verification.errors.items():
        quantity = f"total relative error of {model}, {verification.what}, {labels.level(verification.level)}"
        rows = [
            Row(
                verification.figure,
                quantity,
                printed,
                percent_text(comparison.error[model]),
                _replay_note(run, comparison, model),
                _mpi_of(run),
            )
            for run, comparison in found
            if model in comparison.error
        ]
        yield from rows or [
            Row(verification.figure, quantity, printed, note=_without(verification.level, "a replay"))
        ]


def _replays(step: str, material: Material) -> list[tuple[MeasuredRun, Comparison]]:
    """Return the runs of a step that replayed an exchange, each with its comparison."""
    return [
        (run, comparison)
        for run in material.runs
        if step_of(run) == step
        for comparison in material.comparisons
        if str(comparison.extra.get("run_id")) == str(run.header.get("id"))
    ]


def _mpi_of(run: MeasuredRun) -> str:
    return labels.flavour(str(settings_of(run).get("mpi") or ""))


def _meshes(material: Material) -> Iterator[Row]:
    """Yield the errors of Tables III and IV, next to that of the mesh here in the rows with the nearest
    number of processes."""
    model = "staircase"
    found = [(run, one) for run, one in _replays(MESH, material) if model in one.error]
    for printed in realistic():
        rows = []
        for run, comparison in found:
            ranks = len(comparison.measured_s)
            nearest = min(abs(each.ranks - ranks) for each in realistic())
            if abs(printed.ranks - ranks) == nearest:
                paper = f"a generated mesh in {ranks} parts" + f" (paper: {printed.ranks})" * (nearest > 0)
                note = f"{paper}; {_replay_note(run, comparison, model)}"
                rows.append(printed.row(f"{comparison.error[model]:.3f}", note, _mpi_of(run)))
        yield from rows or [printed.row()]


def _packing(profiles: list[tuple[Profile, str]]) -> Iterator[Row]:
    """Yield the cost of packing indexed data, which the paper names as missing in its model."""
    quantity = "packing and unpacking, of data at irregular places on cold caches, largest size"
    here = []
    for profile, label in profiles:
        rates = [
            (form.what.method, form.parameters.size_bytes[-1] / form.parameters.time_s[-1])
            for form in profile.packings
            if (form.what.packing, form.what.cache) == (_PRINTED_PACKING, "cold")
            and form.parameters.time_s[-1] > 0
        ]
        text = ", ".join(f"{method} {format_bandwidth(rate)}" for method, rate in rates)
        here += [Row("section VI", quantity, "left out", text, mpi=label)] if text else []
    yield from here or [Row("section VI", quantity, "left out", note=f"{NOT_MEASURED}: needs an MPI")]


def _replay_note(run: MeasuredRun, comparison: Comparison, model: str) -> str:
    messages = next((sample.config.get("messages") for sample in run.samples), None)
    notes = [f"{len(comparison.measured_s)} ranks, {messages} messages"]
    if comparison.empty is not None:
        notes.append(crowded_text("ranks", run))
        if model in comparison.empty.error:
            over = percent_text(comparison.empty.error[model])
            notes.append(f"{over} added to the exchange without data")
    return "; ".join(notes)


def _chapter(material: Material) -> Chapter:
    own = only_runs_of(material, NAME)
    measured = sweeps(own)
    return chapter_of(
        PAPER,
        _rows_of(own, measured),
        lines=[_SETUP],
        figures=sweep_figures(measured),
        tables=[sweep_table(sweep) for sweep in measured],
    )


PAPER = Paper(
    NAME,
    "Detailed Modeling of Heterogeneous and Contention-Constrained Point-to-Point MPI Communication",
    "Thune et al.",
    2023,
    {
        "Table I, figure 1": "latency and bandwidth that N processes share, of four machines",
        "figure 3": "three pairs with different sizes on one socket, against the staircase",
        "Table II, figure 4": "exchanges on one level: errors of staircase and max-rate",
        "figure 5": "exchanges inside and across sockets",
        "Tables III, IV": "exchanges of a mesh in up to 8192 parts",
    },
    _TAKES,
    (420.0, 120.0),
    _plan,
    _remarks,
    _rows,
    _chapter,
    f"The values of Table I are those of {' / '.join(MACHINES.values())}.",
)
