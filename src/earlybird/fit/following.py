"""Commands to run after a fit: those that use the profile on the machine that was measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from earlybird.data.collective_form import CollectiveForm
from earlybird.data.measure_commands import LaunchOptions
from earlybird.data.profile import Profile
from earlybird.data.run import Run
from earlybird.data.shell_commands import command_text, path_argument, quoted


def predict_command(sources: Sequence[Path], profile: Profile, output: Path) -> str:
    """Return the command that predicts an exchange on the measured nodes; if the ranks ran on other machines,
    also the command that replays it there."""
    runs = [Run.open(source) for source in sources if source.is_dir()]
    nodes = max((_num_nodes(launch) for run in runs for launch in run.launches()), default=1)
    layout = f"{nodes}x1x{2 if 'intra_socket' in profile.levels else 1}" if nodes > 1 else "1x1x4"
    arguments = f"PATTERN --profile {path_argument(output)} --layout {layout}"
    launch = LaunchOptions.of(profile)
    if nodes == 1 or not launch.arguments:
        return f"earlybird predict {arguments}"
    return (
        f"earlybird predict {arguments}, or with real MPI: "
        f"earlybird replay {arguments} {command_text(launch.arguments)} -o replay"
    )


def advise_pipeline_command(profile: Profile, output: Path) -> str:
    """Return the command for advice on pipelines, at the size and thread count measured with the longest
    delay."""
    form = max(profile.pipelines, key=lambda form: form.range["gamma_s_per_byte"][1])
    size = form.threads * (round(form.range["size_bytes"][1]) // form.threads)
    return (
        f"earlybird advise pipeline --threads {form.threads} --size {size} "
        f"--gamma {form.range['gamma_s_per_byte'][1] * 1e12:g}us/MB --profile {path_argument(output)}"
    )


def advise_collective_command(forms: Sequence[CollectiveForm], output: Path) -> str:
    """Return the command for advice on collectives, at the largest rank count measured of the first."""
    form = forms[0]
    ranks, map_by = form.range["ranks"][1], form.map_by
    alike = [other.operation for other in forms if (other.range["ranks"][1], other.map_by) == (ranks, map_by)]
    mapping = f" --map-by {quoted(map_by[0])}" if map_by else ""
    return (
        f"earlybird advise collective --op {quoted(','.join(dict.fromkeys(alike)))} --ranks {ranks}{mapping} "
        f"--profile {path_argument(output)}"
    )


def _num_nodes(launch: Mapping[str, Any]) -> int:
    """Return the number of nodes of a launch: all of a virtual cluster, otherwise those with ranks."""
    hosts = {place.get("host") for place in launch.get("placement") or ()}
    return max(len(hosts), len(launch.get("node_received_bytes") or ()), 1)
