"""Options of `project` and `advise program`: the changes to project, and the recording they are of."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from earlybird.cli.options.shared import (
    LAYOUT_HELP,
    LayoutMapByOption,
    ProfilesOption,
    check_map_by,
    load_profiles,
)
from earlybird.cli.options.values import DURATION
from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout

if TYPE_CHECKING:
    from earlybird.data.projection import Projection
    from earlybird.record.costs import Placement
    from earlybird.record.projection import EarlySending

RecordingArgument = Annotated[
    Path, typer.Argument(metavar="REC/", help="Recording, the folder of `earlybird record`.")
]
PhaseOption = Annotated[
    int | None, typer.Option(help="Only this phase, as `show` numbers them.  [default: those of 1 % or more]")
]


@dataclass(frozen=True)
class ChangeOptions:
    """The changes to project, and the profile with which to predict them."""

    profile: ProfilesOption = None
    layout: Annotated[
        str | None,
        typer.Option(help=f"Layout of the recorded ranks: {LAYOUT_HELP}  [default: the recorded hosts]"),
    ] = None
    map_by: LayoutMapByOption = None
    to_layout: Annotated[
        list[str] | None,
        typer.Option(
            help="Other layout, such as 4x1x2 or 4x1x2:node for ranks that fill it by node; repeat for "
            "several.  [default: the other orders of filling --layout]"
        ),
    ] = None
    to_profile: Annotated[
        list[str] | None, typer.Option(help="Profile of another MPI on this machine; repeat for several.")
    ] = None
    partitions: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Send each message in this many partitions, early.  [default: one per thread, if the "
            "arrivals of threads were recorded]",
        ),
    ] = None
    delay: Annotated[
        float | None,
        typer.Option(
            help="How much later the last partition is ready, such as 400us.  [default: as recorded]"
        ),
        DURATION,
    ] = None
    noise_percent: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1000,
            help="The same, in percent of the computation of an epoch.  [default: 4 if nothing was recorded]",
        ),
    ] = None

    @property
    def are_given(self) -> bool:
        """True if the user has named changes."""
        return bool(self.to_layout or self.to_profile or self.partitions)

    def project(self, recording_path: Path, phase: int | None) -> "Projection":
        """Project the recording; raise InputError for changes that do not fit it."""
        from earlybird.data.profile import load_profile
        from earlybird.data.recording import load_recording
        from earlybird.record.projection import Changes, other_mappings, project, recorded_place

        recording = load_recording(recording_path)
        if not recording.ranks:
            raise InputError(
                f"the recording {recording_path} has no rank; record a program that calls MPI_Init"
            )
        joined = load_profiles(self.profile)
        check_map_by(self.map_by, self.layout)
        place = (
            recorded_place(recording)
            if self.layout is None
            else _place(self.layout, self.map_by or "core", "--layout")
        )
        places = (
            other_mappings(place)
            if self.to_layout is None
            else [_place(*_with_mapping(text), "--to-layout") for text in self.to_layout]
        )
        profiles = {name: load_profile(name) for name in self.to_profile or ()}
        return project(recording, joined, place, Changes(places, profiles, self._early()), phase)

    def _early(self) -> "EarlySending":
        from earlybird.record.projection import EarlySending

        if self.delay is not None and self.noise_percent is not None:
            raise InputError("--delay and --noise-percent say the same; give one of them")
        share = None if self.noise_percent is None else self.noise_percent / 100
        return EarlySending(self.partitions, self.delay, share)


def _with_mapping(text: str) -> tuple[str, str]:
    layout, _, map_by = text.partition(":")
    return layout, map_by or "core"


def _place(text: str, map_by: str, option: str) -> "Placement":
    from earlybird.record.costs import Placement

    try:
        return Placement(parse_layout(text, map_by), text.strip(), map_by)
    except InputError as error:
        raise InputError(f"{option}: {error}") from error
