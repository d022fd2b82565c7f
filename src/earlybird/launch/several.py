"""Launches of several MPIs in one session, each by the launcher of its MPI."""

from dataclasses import dataclass
from pathlib import Path

from earlybird.data.layout import Layout
from earlybird.launch.launcher import Heard, Launched, Launcher, Request


@dataclass(frozen=True)
class SeveralMpis:
    """A launcher that passes each launch to the one of `launchers` whose flavour its points contain as `mpi`.

    The launchers differ only in their MPI.
    """

    launchers: tuple[Launcher, ...]

    @property
    def name(self) -> str:
        return self.launchers[0].name

    @property
    def flavour(self) -> str:
        return " and ".join(one.flavour for one in self.launchers)

    def check(self, layout: Layout) -> None:
        for launcher in self.launchers:
            launcher.check(layout)

    def shares_cores(self, layout: Layout) -> bool:
        return self.launchers[0].shares_cores(layout)

    def launch(self, request: Request, scratch: Path, progress: Heard) -> Launched:
        flavour = request.points[0]["mpi"]
        launcher = next(one for one in self.launchers if one.flavour == flavour)
        return launcher.launch(request, scratch, progress)


def launchers_in(launcher: Launcher) -> tuple[Launcher, ...]:
    """Return the launchers that `launcher` consists of: itself, or those of several MPIs."""
    return launcher.launchers if isinstance(launcher, SeveralMpis) else (launcher,)
