"""`earlybird advise collective`: the algorithm to use at every size, and the setting that selects it."""

from pathlib import Path
from typing import Annotated

import typer

from earlybird.advise.collective import advise_collective
from earlybird.cli.advice_output import show_advice
from earlybird.cli.common import FORMAT, JSON, Format, note
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
from earlybird.data.collective_configuration import Configuration
from earlybird.data.errors import InputError
from earlybird.data.units import format_bytes, parse_bytes

COLUMNS = {"form": "form"}


def collective(
    op: OperationOption,
    ranks: RanksOption = None,
    size: Annotated[
        str | None,
        typer.Option("--size", help="Size at which to rank the algorithms.  [default: the largest measured]"),
    ] = None,
    profile: ProfilesOption = [],  # noqa: B006
    map_by: MapOption = None,
    layout: PlacesOption = None,
    root: RootOption = 0,
    mpi_only: Annotated[
        bool,
        typer.Option(
            "--mpi-only", help="Exclude Earlybird's algorithms, which are made of sends and receives."
        ),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="File to write with settings that select the MPI's best algorithms."),
    ] = None,
    format: Format = FORMAT,
    json: bool = JSON,
) -> None:
    """Recommend the algorithm of a collective operation, its segment size, and the sizes where it is best.

    Ranks every algorithm in the profile at one size, and lists the sizes at which another one becomes the
    best. --config writes a file of rules for Open MPI, and environment variables for MPICH and Intel MPI.
    It covers the MPI's own algorithms only: an MPI cannot select Earlybird's.
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
    show_advice(advice, Format.json if json else format, COLUMNS)
    asked = advice.asked
    default = "; default is the MPI's own choice" if advice.baseline else ""
    note(
        f"{asked['operation']} of {format_bytes(asked['size_bytes'])} among {asked['ranks']} ranks on "
        f"{asked['layout']}{default}"
    )


def write_settings(settings: Configuration | None, path: Path) -> None:
    if settings is None:
        raise InputError(
            f"there are no settings to write to {path}: the profile contains no algorithm of Open MPI, "
            "MPICH or Intel MPI; omit --config, or measure some with --algorithm linear,pipeline,binomial"
        )
    files.write_text(path, settings.text)
    if settings.idle:
        note(f"wrote {path}, which sets nothing: the default is the best algorithm that this MPI can select")
    else:
        note(f"wrote {path}; use it with: {settings.use.replace('FILE', str(path.resolve()))}")
    if settings.left_out:
        omitted = "; ".join(region.describe() for region in settings.left_out)
        reason = (
            "rules give Open MPI's component tuned priority over the one that chooses automatically"
            if settings.kind == "rules"
            else "this MPI uses one algorithm for all sizes"
        )
        note(f"warning: {reason}, so {path} does not cover: {omitted}")
