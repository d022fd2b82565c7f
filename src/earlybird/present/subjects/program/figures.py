"""Figures of simulated programs: timelines before and after, efficiency over time, critical path, changes."""

from collections.abc import Sequence
from typing import Any

from earlybird.data import labels
from earlybird.data.simulated_program import (
    COMPUTING,
    IN_MPI,
    TRANSFER,
    WAITING,
    SimulatedProgram,
    Timeline,
    TimelineOfRun,
    TolerancePoint,
)
from earlybird.data.tolerance import BANDWIDTH, LATENCY
from earlybird.data.units import format_seconds
from earlybird.present.core import axes
from earlybird.present.core.bars import SHAPES, rounded, rows_layout
from earlybird.present.core.lines import line, whiskers
from earlybird.present.core.parts import Figure, grouped
from earlybird.present.core.table import more_text

MAX_THREADS, MAX_PATH = 8, 12  # that are drawn
_LINE_HEIGHT, _AROUND = 16, 110
# The states of timelines, and how they look.
_STATES = {
    state: (axes.series(k), SHAPES[k]) for k, state in enumerate((COMPUTING, WAITING, TRANSFER, IN_MPI))
}


def timeline_figure(simulated: SimulatedProgram, of: str, id: str) -> Figure:
    """Draw what each thread does over time: as recorded, simulated as recorded, and with the changes."""
    ticks, names = [], []
    bars: dict[str, list[tuple[float, float, float]]] = {state: [] for state in _STATES}
    base = 0
    for run in simulated.timelines:
        for k, thread in enumerate(run.threads[:MAX_THREADS]):
            ticks.append(base + k)
            names.append(axes.label(_thread_name(run, thread)))
            for state, begin_s, end_s in _parts(run, thread):
                if state in bars:
                    bars[state].append((base + k, begin_s, end_s - begin_s))
        base += len(run.threads[:MAX_THREADS]) + 1
    num_threads = max((len(run.threads) for run in simulated.timelines), default=0)
    more = more_text(num_threads - MAX_THREADS, "thread", "not drawn")
    return Figure(
        id,
        f"Timeline before and after{of}",
        "Each row is a rank: first as it was recorded, then simulated. A moment has the colour of what takes "
        f"most of it; after the end of a rank it is empty{more}.",
        [_state_bars(state, parts) for state, parts in bars.items() if parts],
        axes.layout(
            {"title": axes.titled("time since MPI_Init in s"), "rangemode": "tozero"},
            {"tickvals": ticks, "ticktext": names, "autorange": "reversed", "showgrid": False},
            barmode="overlay",
            bargap=0.1,
            height=_AROUND + _LINE_HEIGHT * max(base, 4),
        ),
        wide=True,
    )


def _thread_name(run: TimelineOfRun, thread: Timeline) -> str:
    has_threads = any(other.thread for other in run.threads)
    name = f"rank {thread.rank}" + (f", thread {thread.thread}" if has_threads else "")
    return f"{run.run}: {name}" if thread is run.threads[0] else name


def _parts(run: TimelineOfRun, thread: Timeline) -> list[tuple[str, float, float]]:
    ends = [*thread.begin_s[1:], run.run_s]
    return list(zip(thread.state, thread.begin_s, ends, strict=False))


def _state_bars(state: str, parts: Sequence[tuple[float, float, float]]) -> dict[str, Any]:
    rows, begins_s, lengths_s = zip(*parts, strict=True)
    look, shape = _STATES[state]
    return {
        "type": "bar",
        "orientation": "h",
        "name": labels.capital(state) if state != IN_MPI else "In MPI",
        "y": list(rows),
        "x": [rounded(length_s) for length_s in lengths_s],
        "base": [float(f"{begin_s:.6g}") for begin_s in begins_s],
        "marker": {"color": axes.color(look), "line": {"width": 0}} | axes.bar_pattern(shape),
        "hoverinfo": "name+x",
    }


def windows_figure(simulated: SimulatedProgram, of: str, id: str) -> Figure:
    """Draw parallel efficiency and load balance over the time of the simulated run."""
    middles = [rounded((window.begin_s + window.end_s) / 2) for window in simulated.windows]
    lines = []
    for k, (name, values) in enumerate({
        "parallel efficiency": [window.parallel for window in simulated.windows],
        "load balance": [window.load_balance for window in simulated.windows],
    }.items()):  # fmt: skip
        hover = [
            f"{name}: <b>{labels.percent(value)}</b><br>{format_seconds(window.begin_s)} to "
            f"{format_seconds(window.end_s)}"
            for value, window in zip(values, simulated.windows, strict=True)
        ]
        look = axes.series(k)
        shares = list(map(rounded, values))
        lines.append(
            line(labels.capital(name), middles, shares, hover, axes.color(look), symbol=axes.symbol(look))
        )
    return Figure(
        id,
        f"Efficiency over time{of}",
        "Parallel efficiency: the part of each window in which the ranks compute, in the mean. Load balance: "
        "the mean of what they compute in it over the most.",
        lines,
        axes.layout(
            {"title": axes.titled("time since MPI_Init in s"), "rangemode": "tozero"},
            axes.linear_share_axis(1.0, "efficiency"),
        ),
    )


def path_figure(simulated: SimulatedProgram, of: str, id: str) -> Figure:
    """Draw a bar for each of the longest parts of the critical path: computing, and communicating."""
    parts = simulated.critical_path[:MAX_PATH]
    rows = [axes.label(f"rank {part.rank}, until {part.site}") for part in parts]
    more = more_text(len(simulated.critical_path) - len(parts), "part", "in the file")
    data = []
    for k, (name, times_s) in enumerate({
        "computing": [part.computing_s for part in parts],
        "communicating": [part.communicating_s for part in parts],
    }.items()):  # fmt: skip
        hover = [
            f"{row}<br>{name}: <b>{format_seconds(time_s)}</b>, "
            f"{labels.percent(time_s / max(simulated.simulated_s, 1e-12))} of the run"
            for row, time_s in zip(rows, times_s, strict=True)
        ]
        data.append({
            "type": "bar", "orientation": "h", "name": labels.capital(name), "y": rows,
            "x": list(map(rounded, times_s)), "hoverinfo": "text", "hovertext": hover,
            "marker": {"color": axes.color(axes.series(k))} | axes.bar_pattern(SHAPES[k]),
        })  # fmt: skip
    layout = rows_layout({"title": axes.titled("time on the path in s"), "rangemode": "tozero"}, len(parts))
    return Figure(
        id,
        f"Critical path{of}",
        "What determines the run time: what a rank does until it must wait for another one, and then what "
        f"that one did. To shorten anything else gains nothing{more}.",
        data,
        layout | {"barmode": "stack"},
        wide=True,
    )


def tolerance_figure(simulated: SimulatedProgram, of: str, id: str) -> Figure:
    """Draw the run time against the factor by which the latency or bandwidth of a level is multiplied."""
    now = {  # of a parameter, where the other one of its level differs
        (point.level, LATENCY if point.parameter == BANDWIDTH else BANDWIDTH): _other_value(point)
        for point in simulated.tolerance
    }
    lines, factors, times_s = [], [1.0], [simulated.simulated_s]
    for (level, parameter), points in grouped(
        [point for point in simulated.tolerance if (point.level, point.parameter) in now],
        lambda point: (point.level, point.parameter),
    ).items():
        pairs = sorted((_value(point) / now[level, parameter], point.simulated_s) for point in points)
        name = f"{parameter}, {labels.level(level)}"
        hover = [f"{name} times {factor:.3g}<br><b>{format_seconds(time_s)}</b>" for factor, time_s in pairs]
        is_latency = parameter == LATENCY
        lines.append(
            line(
                labels.capital(name), [pair[0] for pair in pairs],
                [rounded(pair[1]) for pair in pairs], hover,
                axes.color(level), "dash" if is_latency else "solid",
                symbol=axes.symbol(level) + "-open" * is_latency,
            )
        )  # fmt: skip
        factors += [pair[0] for pair in pairs]
        times_s += [pair[1] for pair in pairs]
    return Figure(
        id,
        f"Run time against latency and bandwidth{of}",
        "The simulated run if one parameter is multiplied by a factor. A flat line: the parameter does not "
        "matter to the program.",
        lines,
        axes.layout(
            axes.factor_axis(factors, "factor of the latency or bandwidth"),
            axes.log_time_axis([*times_s, times_s[0] / 1.7, times_s[0] * 1.7], "run time"),
        ),
        wide=True,
    )


def _value(point: TolerancePoint) -> float:
    return point.latency_s if point.parameter == LATENCY else point.bandwidth_bytes_per_s


def _other_value(point: TolerancePoint) -> float:
    return point.bandwidth_bytes_per_s if point.parameter == LATENCY else point.latency_s


def changes_figure(changed: Sequence[tuple[str, SimulatedProgram]], id: str) -> Figure:
    """Draw a point with whiskers for each simulation with changes, the fastest first."""
    known = [(", ".join(one.changes), one.speed_up, title) for title, one in changed if one.speed_up]
    known.sort(key=lambda row: -row[1].value)
    rows = [axes.label(name) for name, _, _ in known]
    bounds = [bound for _, speed_up, _ in known for bound in (speed_up.low, speed_up.high)]
    hover = [f"{axes.label(title)}<br><b>{speed_up.value:.2f}</b>" for _, speed_up, title in known]
    return Figure(
        id,
        "Speed-up of the run by changes",
        "The simulation as recorded over that with the changes of one row, made together. Whiskers: 95 %.",
        [whiskers("speed-up", axes.series(0), [row[1] for row in known], rows, hover)],
        axes.layout(
            axes.ratio_axis(bounds, "speed-up of the run"),
            {"categoryorder": "array", "categoryarray": rows[::-1], "showgrid": False},
            height=axes.height_of_rows(len(known)),
            showlegend=False,
        ),
        wide=True,
    )
