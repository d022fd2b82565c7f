"""`earlybird advise collective`: the algorithm to take at every size, and what makes the MPI take it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from earlybird.advise.collective import advise_collective
from earlybird.cli.advice_output import show_advice
from earlybird.cli.common import FORMAT, JSON, Format, note, print_table
from earlybird.cli.options import ProfilesOption
from earlybird.cli.predict_collective import (
    MapOption,
    OperationOption,
    PlacesOption,
    RanksOption,
    RootOption,
    require_size,
)
from earlybird.cli.predict_pipeline import load_profiles
from earlybird.data import files
from earlybird.data.advice import Advice, Alternative, Stretch
from earlybird.data.collective_configuration import Configuration
from earlybird.data.errors import InputError
from earlybird.data.units import format_bytes, format_seconds, parse_bytes

_COLUMNS = ("method", "algorithm", "segment_bytes", "time_s", "gain", "form", "do")


def collective(
    op: OperationOption,
    ranks: RanksOption = None,
    size: Annotated[
        str | None, typer.Option("--size", help="The size to rank the algorithms at; the largest measured.")
    ] = None,
    profile: ProfilesOption = [],  # noqa: B006
    map_by: MapOption = None,
    layout: PlacesOption = None,
    root: RootOption = 0,
    mpi_only: Annotated[
        bool, typer.Option("--mpi-only", help="Leave out our own algorithms, made of sends and receives.")
    ] = False,
    config: Annotated[
        Path | None, typer.Option("--config", help="Write what makes the MPI take its best algorithms.")
    ] = None,
    format: Format = FORMAT,
    json: bool = JSON,
) -> None:
    """Which algorithm of a collective operation to take, with which segments, and from which size on.

    Every algorithm that the profile holds, ranked at one size; then the sizes at which another one becomes
    the best. --config writes a file of rules for Open MPI, of variables for a job script for MPICH and Intel
    MPI: of the MPI's own algorithms, as no MPI can be told to take ours.
    """
    joined = load_profiles(profile)
    size_bytes = None if size is None else parse_bytes(size, "--size")
    if size_bytes is not None:
        require_size(op, size_bytes)
    advice, settings = advise_collective(
        joined, op, ranks, size_bytes, layout=layout, map_by=map_by, root=root, mpi_only=mpi_only
    )
    if config is not None:
        write_settings(settings, config)
    show_advice(advice, Format.json if json else format, _COLUMNS, _print)


def write_settings(settings: Configuration | None, path: Path) -> None:
    if settings is None:
        raise InputError(
            f"nothing is known to write to {path}: the profile holds no algorithm of Open MPI's, MPICH's or "
            "Intel MPI's own; leave --config out, or measure some with --algorithm linear,pipeline,binomial"
        )
    files.write_text(path, settings.text)
    if settings.idle:
        note(f"wrote {path}, which sets nothing: default is the best of what this MPI can be told")
    else:
        note(f"wrote {path}; use it with: {settings.use.replace('FILE', str(path.resolve()))}")
    if settings.left_out:
        told = "; ".join(region.describe() for region in settings.left_out)
        why = (
            "rules put Open MPI's component tuned before the one that chooses by itself"
            if settings.kind == "rules"
            else "this MPI takes one algorithm for all sizes"
        )
        note(f"warning: {why}, so {path} does not tell: {told}")


def _print(advice: Advice) -> None:
    timed = any("measured_s" in one.extra for one in advice.ranked)
    rows = [_row(k, one) for k, one in enumerate(advice.ranked, start=1)]
    for row, one in zip(rows, advice.ranked, strict=True):
        measured_s = one.extra.get("measured_s")
        row += [] if not timed else ["" if measured_s is None else format_seconds(measured_s)]
    header = ["", "algorithm", "time", "95 %", "gain", "95 %", "form"]
    print_table([*header, "measured"] if timed else header, rows)
    print()
    for k, one in enumerate(advice.ranked, start=1):
        print(f"{k}. {one.do}")
    print()
    print_table(["from", "to", "best", ""], [_stretch_row(one) for one in advice.stretches])
    asked = advice.asked
    gain = f"; gain over {advice.baseline}, the MPI's own choice" if advice.baseline else ""
    note(
        f"{asked['operation']} of {format_bytes(asked['size_bytes'])} among {asked['ranks']} ranks on "
        f"{asked['layout']}{gain}"
    )


def _row(place: int, one: Alternative) -> list[Any]:
    return [
        place,
        name_of(one.method),
        format_seconds(one.time_s),
        " .. ".join(map(format_seconds, one.time_interval_s)) if one.time_interval_s else "",
        "" if one.gain is None else f"{one.gain:.2f}",
        " .. ".join(f"{bound:.2f}" for bound in one.gain_interval) if one.gain_interval else "",
        one.extra["form"],
    ]


def _stretch_row(one: Stretch) -> list[str]:
    return [
        format_bytes(one.from_bytes),
        format_bytes(one.to_bytes),
        name_of(one.method),
        f"extrapolated: {', '.join(one.extra['extrapolated'])}" if "extrapolated" in one.extra else "",
    ]


def name_of(method: str) -> str:
    """`pipeline:8192` as people read it."""
    algorithm, colon, segment = method.partition(":")
    return f"{algorithm}, segments of {format_bytes(int(segment))}" if colon else algorithm
