"""Writes a profile as the machine of a simulator, or as parameters of the LogGPS model."""

from collections.abc import Callable
from pathlib import Path

from earlybird.data import files
from earlybird.data.errors import InputError
from earlybird.data.profile import load_profile
from earlybird.data.shell_commands import quoted
from earlybird.data.simulated_machine import SimulatedMachine
from earlybird.interop.exports import Exported
from earlybird.interop.profile_models import changed_costs, loggps, simulated_machine

Shape = tuple[int, int, int] | None  # nodes x sockets x cores of a socket


def write_loggps(source: Path, output: Path) -> Exported:
    """Write the parameters of LogGPS for each level."""
    profile = load_profile(source)
    levels = loggps(profile)
    files.write_json(output, {"profile": profile.id, "levels": levels})
    return Exported({}, f"L, o, g, G and S of {len(levels)} levels")


def write_simulated_machine(source: Path, output: Path, *, shape: Shape = None) -> Exported:
    """Write the machine that `--launcher simgrid` takes."""
    machine, remarks = _machine(source, shape)
    files.write_json(output, machine.to_json())
    use = f"--launcher {quoted(f'simgrid:{output}')}"
    return Exported({}, f"{machine.shape}, nodes x sockets x cores; use it with: {use}", remarks)


def write_platform(
    source: Path, output: Path, *, shape: Shape = None, platform_xml: Callable[[SimulatedMachine], str]
) -> Exported:
    """Write the machine as `platform_xml` describes it to SimGrid."""
    machine, remarks = _machine(source, shape)
    files.write_text(output, platform_xml(machine))
    return Exported({}, f"{machine.shape}, nodes x sockets x cores; each core is a host", remarks)


def _machine(source: Path, shape: Shape) -> tuple[SimulatedMachine, tuple[str, ...]]:
    """Return the machine of a profile, and warnings of what it cannot have as the profile has it."""
    profile = load_profile(source)
    if shape is None:
        raise InputError("--shape is missing; give nodes x sockets x cores, such as --shape 4x2x16")
    machine = simulated_machine(profile, *shape)
    return machine, tuple(f"warning: {changed}" for changed in changed_costs(profile, machine))
