"""`earlybird fit`: fits a profile to run folders or a table of ping-pong times, and prints its summary."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.cli.collective_fit import print_comparison, print_forms, print_regressions
from earlybird.cli.common import FORMAT, JSON, Format, make_command, note, print_csv, print_json, print_table
from earlybird.data import files
from earlybird.data.collective_form import CollectiveForm
from earlybird.data.errors import EarlybirdError, InputError
from earlybird.data.pipeline_form import PipelineForm
from earlybird.data.profile import SCHEMA, Profile, Protocol, save_profile
from earlybird.data.run import Run
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds

_HEADER = ("level", "protocol", "min_bytes", "latency_s", "latency_low_s", "latency_high_s", "n",
           "bandwidth_bytes_per_s", "bandwidth_low_bytes_per_s", "bandwidth_high_bytes_per_s",
           "held_out_error", "held_out_error_n", "sender_waits", "sender_waits_measured")  # fmt: skip


def fit(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Run folders of one context, or one table with columns level,placement,pairs,bytes,time_s.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Profile to write.")] = Path("profile.json"),
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="Ordinary least squares with an intercept per N, as in Thune et al. 2023."
        ),
    ] = False,
    model_selection: Annotated[
        bool,
        typer.Option(
            "--model-selection",
            help="Also compare one, two and three protocols per level, and the forms of collectives.",
        ),
    ] = False,
    mean_over_ranks: Annotated[
        bool,
        typer.Option(
            "--mean-over-ranks",
            help="Compare the forms of collectives by the mean over ranks, as OSU prints it.",
        ),
    ] = False,
    mpi: Annotated[
        str | None, typer.Option("--mpi", help="Use only the samples of this MPI, of runs with several.")
    ] = None,
    output_format: Format = FORMAT,
    as_json: bool = JSON,
) -> None:
    """Fit latency, bandwidth under contention and protocol switches, with intervals and held-out error.

    For held-out errors, protocol switches are refitted with each size left out; the number of protocols is
    fixed.
    """
    _require_replaceable(output)
    observations = _read(sources, mpi)
    from earlybird.fit.collective_comparison import COMPLETION, MEAN
    from earlybird.fit.profile import compare_segmentations, fit_profile

    times = MEAN if mean_over_ranks else COMPLETION
    profile = fit_profile(observations, paper=paper, collective_times=times)
    collectives = profile.collectives
    choices = compare_segmentations(observations, paper=paper) if model_selection else []
    save_profile(profile, output)
    if as_json or output_format is Format.json:
        summary = _summary(profile, output, [_choice_json(choice) for choice in choices])
        print_json(summary | (_collectives_json(observations, collectives, times) if model_selection else {}))
    else:
        print_profile(profile, output_format, choices)
    if not as_json and output_format is Format.table:
        if collectives and model_selection:
            _print_selection(observations, collectives, times)
        if profile.levels:
            note(f"wrote {output}; next: {_next(sources, profile, output, mpi)}")
        else:
            note(f"wrote {output}")
        if profile.pipelines:
            note(f"and: {_advise(profile, output)}")
        if collectives:
            note(f"next: {_advise_collective(collectives, output)}")
    for warning in profile.extra["warnings"]:
        note(f"warning: {warning}")


def print_profile(profile: Profile, format: Format, choices=()) -> None:
    """Print the parameters of a profile as a table or CSV; `choices` are the protocols it was chosen from."""
    if format is Format.csv:
        print_csv(_HEADER, _rows(profile))
        return
    if profile.levels:
        _print_tables(profile, choices)
    if collectives := profile.collectives:
        print_forms(collectives)


def _read(sources, mpi):
    from earlybird.fit.observations import read_runs, read_table

    tables = [path for path in sources if path.is_file()]
    if not tables:
        return read_runs(sources, mpi)
    if len(sources) > 1:
        raise InputError(
            f"{tables[0]} is a table, given with {len(sources) - 1} more; give one table only, or run folders"
        )
    _refuse_fitted_table(tables[0])
    return read_table(tables[0])


def _refuse_fitted_table(path):
    from earlybird.data.tables import THUNE_HEADER

    if files.read_text(path, "table").partition("\n")[0].strip() == ",".join(THUNE_HEADER):
        raise InputError(
            f"{path} contains fitted parameters, not times; give run folders or a table of times"
        )


def _next(sources: list[Path], profile: Profile, output: Path, mpi: str | None) -> str:
    """The next command for the profile, with a layout of the measured nodes; if the ranks ran on other
    machines, also the command that replays there."""
    runs = [Run.open(source) for source in sources if source.is_dir()]
    nodes = max((_num_nodes(launch) for run in runs for launch in run.launches()), default=1)
    layout = f"{nodes}x1x{2 if 'intra_socket' in profile.levels else 1}" if nodes > 1 else "1x1x4"
    arguments = f"PATTERN --profile {shlex.quote(str(output))} --layout {layout}"
    settings = next((run.header["settings"] for run in runs if run.header.get("settings")), {})
    settings = settings | {"mpi": mpi or settings.get("mpi")}
    launch_options = [
        f"--{name} {shlex.quote(str(settings[name]))}"
        for name in ("launcher", "hosts", "agent", "mpi")
        if settings.get(name) not in (None, "local")
    ]
    if nodes == 1 or not launch_options:
        return f"earlybird predict {arguments}"
    return (
        f"earlybird predict {arguments}, or with real MPI: "
        f"earlybird replay {arguments} {' '.join(launch_options)} -o replay"
    )


def _advise(profile: Profile, output: Path) -> str:
    """The command for advice on pipelines, at the size and thread count measured with the longest delay."""
    form = max(profile.pipelines, key=lambda one: one.range["gamma_s_per_byte"][1])
    size = form.threads * (round(form.range["size_bytes"][1]) // form.threads)
    return (
        f"earlybird advise pipeline --threads {form.threads} --size {size} "
        f"--gamma {form.range['gamma_s_per_byte'][1] * 1e12:g}us/MB --profile {shlex.quote(str(output))}"
    )


def _advise_collective(forms: list[CollectiveForm], output: Path) -> str:
    """The command for advice on collectives, at the largest rank count measured."""
    form = forms[0]
    mapping = f" --map-by {form.map_by[0]}" if form.map_by else ""
    return (
        f"earlybird advise collective --op {form.operation} --ranks {form.range['ranks'][1]}{mapping} "
        f"--profile {shlex.quote(str(output))}"
    )


def _print_selection(observations, forms: list[CollectiveForm], times: str) -> None:
    print()
    print_comparison(forms)
    print(f"\nAICc: from the likelihood of times in us, lower is better; times are {times}")
    print_regressions(_regressions(observations, times))
    print()
    for text in _verdicts(forms):
        print(text)


def _regressions(observations, times: str):
    from earlybird.fit.collective_comparison import cores_per_node, time_column
    from earlybird.fit.report_forms import regressions

    collectives = observations.collectives
    return regressions(collectives.table, cores_per_node(collectives), time_column(times))


def _verdicts(forms: list[CollectiveForm]) -> list[str]:
    from earlybird.fit.collective_comparison import verdict

    return [verdict(one.operation, one.algorithm, one.extra.get("alternatives", ())) for one in forms]


def _collectives_json(observations, forms: list[CollectiveForm], times: str) -> dict[str, Any]:
    """Regressions and verdicts; the comparison of the forms is in their `alternatives`."""
    if not forms:
        return {}
    results = [
        vars(one) | {"rows": [vars(row) for row in one.rows]} for one in _regressions(observations, times)
    ]
    return {"regressions": results, "verdicts": _verdicts(forms)}


def _num_nodes(launch: dict[str, Any]) -> int:
    """Number of nodes of a launch: all of a virtual cluster, otherwise those with ranks."""
    hosts = {place.get("host") for place in launch.get("placement") or ()}
    return max(len(hosts), len(launch.get("node_received_bytes") or ()), 1)


def _require_replaceable(path: Path) -> None:
    if not path.exists():
        return
    try:
        files.read_json(path, "output", SCHEMA)
    except EarlybirdError as error:
        raise InputError(f"{path} exists and is not a profile; choose another file for -o") from error


def _print_tables(profile: Profile, choices) -> None:
    print_table(
        (
            "level",
            "protocol",
            "from",
            "sender waits",
            "latency",
            "95 %",
            "N",
            "bandwidth",
            "95 %",
            "held-out size",
            "held-out N",
        ),
        [row for name in profile.levels for row in _level_rows(profile, name)],
    )
    if forms := profile.pipelines:
        print()
        print_table(
            ("pipelines", "method", "threads", "contexts", "messages", "protocols", "error",
             "held-out partitions", "held-out size"),
            [_pipeline_row(form) for form in forms],
        )  # fmt: skip
    if choices:
        print()
        print_table(
            (
                "level",
                "segments",
                "from",
                "parameters",
                "criterion",
                "in-sample error",
                "held-out, same switches",
                "held-out size",
                "chosen",
            ),
            [
                (
                    choice.level,
                    choice.segmentation.num_segments,
                    ", ".join(format_bytes(start) for start in choice.segmentation.min_bytes),
                    choice.segmentation.num_parameters,
                    f"{choice.segmentation.criterion:.1f}",
                    _per_cent(choice.in_sample_error),
                    _per_cent(choice.kept_switches_error),
                    _per_cent(choice.held_out_error),
                    "yes" if choice.chosen else "",
                )
                for choice in choices
            ],
        )


def _pipeline_row(form: PipelineForm) -> tuple:
    messages = form.parameters.messages
    errors = (form.extra.get(key) for key in ("error", "held_out_error", "held_out_error_sizes"))
    return (
        form.level, form.method, form.threads, form.vcis or "",
        f"up to {format_bytes(messages)}" if isinstance(messages, int) else messages,
        len(form.parameters.protocols), *map(_per_cent, errors),
    )  # fmt: skip


def _level_rows(profile: Profile, name: str) -> list[tuple]:
    level = profile.levels[name]
    errors = [_per_cent(level.extra.get(key)) for key in ("held_out_error", "held_out_error_n")]
    rows = []
    for k, protocol in enumerate(level.protocols):
        if k and protocol.continues(level.protocols[k - 1]):
            rows.append(("", *_beginning(protocol), *("",) * 7))
            continue
        latency_bounds, bandwidth_bounds = _bounds(profile, name, protocol)
        for j, (n, bandwidth) in enumerate(sorted(protocol.bandwidth_bytes_per_s.items())):
            mark = "*" if n in protocol.extra.get("oversubscribed_n", ()) else ""
            head = ("",) * 6
            if j == 0:
                latency = format_seconds(protocol.latency_s), _range(latency_bounds, format_seconds)
                head = ("" if k else name, *_beginning(protocol), *latency)
            bounds = _range(bandwidth_bounds.get(str(n)), format_bandwidth)
            bound = " bound" if n in _bounded_n(protocol) else ""
            figure = format_bandwidth(bandwidth) + bound
            rows.append((*head, f"{n}{mark}", figure, bounds, *(("", "") if j or k else errors)))
    return rows


def _bounded_n(protocol: Protocol) -> set[int]:
    """The N whose bandwidth is a bound: their times do not determine it, or it exceeds that of the link."""
    return {n for key in ("bounded_n", "above_link_n") for n in protocol.extra.get(key, ())}


def _beginning(protocol: Protocol) -> tuple[str, str, str]:
    source = "measured" if protocol.extra.get("sender_waits_measured") else "assumed"
    waits = f"{'yes' if protocol.sender_waits else 'no'}, {source}"
    return protocol.name, format_bytes(protocol.min_bytes), waits


def _rows(profile: Profile) -> list[tuple]:
    rows = []
    for name, level in profile.levels.items():
        for protocol in level.protocols:
            latency_bounds, bandwidth_bounds = _bounds(profile, name, protocol)
            for n, bandwidth in sorted(protocol.bandwidth_bytes_per_s.items()):
                latency = (protocol.latency_s, *(latency_bounds or ("", "")))
                rate = (bandwidth, *bandwidth_bounds.get(str(n), ("", "")))
                errors = [level.extra.get(key, "") for key in ("held_out_error", "held_out_error_n")]
                waits = (
                    str(flag).lower()
                    for flag in (protocol.sender_waits, bool(protocol.extra.get("sender_waits_measured")))
                )
                rows.append((name, protocol.name, protocol.min_bytes, *latency, n, *rate, *errors, *waits))
    return rows


def _bounds(
    profile: Profile, level: str, protocol: Protocol
) -> tuple[list[float] | None, dict[str, list[float]]]:
    intervals = profile.intervals.get(level, {}).get(protocol.name, {})
    return intervals.get("latency_s"), intervals.get("bandwidth_bytes_per_s", {})


def _summary(profile: Profile, output: Path, choices: list[dict[str, Any]]) -> dict[str, Any]:
    value = profile.to_json()
    summary = {"profile": str(output)} | {
        key: value[key]
        for key in ("id", "context", "runs", "levels", "forms", "intervals", "warnings")
        if key in value
    }
    return summary | ({"model_selection": choices} if choices else {})


def _choice_json(choice) -> dict[str, Any]:
    return {
        "level": choice.level,
        "segments": choice.segmentation.num_segments,
        "min_bytes": list(choice.segmentation.min_bytes),
        "parameters": choice.segmentation.num_parameters,
        "criterion": choice.segmentation.criterion,
        "in_sample_error": choice.in_sample_error,
        "kept_switches_error": choice.kept_switches_error,
        "held_out_error": choice.held_out_error,
        "chosen": choice.chosen,
    }


def _range(bounds, form) -> str:
    return f"{form(bounds[0])} .. {form(bounds[1])}" if bounds else ""


def _per_cent(error: float | None) -> str:
    return "" if error is None else f"{100 * error:.1f} %"


command = make_command(fit, name="fit", example="earlybird fit RUN -o profile.json --model-selection")
