"""Options of `predict program` and `advise program`: the recording, and where its ranks ran."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from earlybird.cli.options.shared import (
    LAYOUT_HELP,
    LayoutMapByOption,
    ProfilesOption,
    check_map_by,
    load_profiles,
)
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout

if TYPE_CHECKING:
    from earlybird.record.advice import ProgramQuestion
    from earlybird.record.placement import Placement
    from earlybird.record.window import Window

RecordingArgument = Annotated[
    Path, typer.Argument(metavar="REC/", help="Recording, the folder of `earlybird record`.")
]


MAX_PARTITIONS = 1024


def partitions_option(default: str = "") -> Any:
    """Return `--partitions`, with what it is by default."""
    return typer.Option(
        min=2,
        max=MAX_PARTITIONS,
        help=f"Send each message in so many partitions, all but the last while its sender computes.{default}",
    )


NoisePercent = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=100,
        help="How much later the last partition is ready, in percent of what is computed before the send."
        "  [default: as threads arrived, 4 if that was not recorded]",
    ),
]


@dataclass(frozen=True)
class RecordedProgram:
    """A recording, and the profile and layout under which it is simulated as recorded."""

    profile: ProfilesOption = None
    layout: Annotated[
        str | None,
        typer.Option(help=f"Layout of the recorded ranks: {LAYOUT_HELP}  [default: the recorded hosts]"),
    ] = None
    map_by: LayoutMapByOption = None

    def question(
        self,
        path: Path,
        to_layout: list[str] | None = None,
        to_profile: list[str] | None = None,
        window: "Window | None" = None,
    ) -> "ProgramQuestion":
        """Return the program with the changes to simulate, by default the other orders of filling its nodes;
        raise InputError if its events do not suffice, or if the changes do not fit it."""
        from earlybird.data.profile import load_profile
        from earlybird.data.recording import load_counted
        from earlybird.record.advice import ProgramQuestion
        from earlybird.record.operations import operations_of
        from earlybird.record.placement import other_mappings, recorded_place

        recording = load_counted(path)
        if not recording.ranks:
            raise InputError(f"the recording {path} has no rank; record a program that calls MPI_Init")
        joined = load_profiles(self.profile)
        check_map_by(self.map_by, self.layout)
        place = (
            recorded_place(recording)
            if self.layout is None
            else placement(self.layout, self.map_by or "core", "--layout")
        )
        places = (
            other_mappings(place)
            if to_layout is None
            else [other_placement(text, recording.size) for text in to_layout]
        )
        profiles = {name: load_profile(name) for name in to_profile or ()}
        return ProgramQuestion(recording, operations_of(recording, window), joined, place, places, profiles)


def other_placement(text: str, num_ranks: int) -> "Placement":
    """Return the placement by a value of --to-layout; raise InputError if it has another number of ranks."""
    place = placement(*with_mapping(text), "--to-layout")
    if place.layout.num_ranks != num_ranks:
        raise InputError(
            f"--to-layout {text} has {place.layout.num_ranks} ranks and the recording has {num_ranks}; give "
            f"a layout of {num_ranks} ranks"
        )
    return place


def with_mapping(text: str) -> tuple[str, str]:
    """Return the layout and the mapping of a text such as 4x1x2:node; `core` without a mapping."""
    layout, _, map_by = text.partition(":")
    return layout, map_by or "core"


def placement(text: str, map_by: str, option: str) -> "Placement":
    """Return the placement of ranks by a layout; raise InputError, which names the option."""
    from earlybird.record.placement import Placement

    try:
        return Placement(parse_layout(text, map_by), text.strip(), map_by)
    except InputError as error:
        raise InputError(f"{option}: {error}") from error
