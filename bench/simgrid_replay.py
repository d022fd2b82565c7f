"""Simulated recordings next to the same traces replayed by SimGrid's SMPI, on machines that both describe.

Ranks in a ring compute for uneven times and exchange with both neighbours by non-blocking messages, in a
recording that is made here. `earlybird export --to simgrid-trace` and `--to simgrid-platform` write what
SMPI replays. Makespans and the time of both are compared, of one core each.
"""

import argparse
import json
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.commands import say, watched
from bench.simulated_windows import RANKS, write_recording
from earlybird.data.layout import parse_layout
from earlybird.data.profile import profile_from_json
from earlybird.data.recording import load_recording
from earlybird.data.units import format_bytes, format_seconds
from earlybird.interop.profile_models import simulated_machine
from earlybird.launch.simgrid import cores_of_ranks, smpi_configuration
from earlybird.machine.flavours import SIMULATED, find_flavour
from earlybird.present.render.terminal import print_rows
from earlybird.record.conditions import conditions_as_recorded, simulate_run
from earlybird.record.operations import operations_of

LATENCY_S, BANDWIDTH, EAGER_BYTES = 3e-6, 1e10, 16384
MAX_OFF = 0.05
# Bytes of a message, and seconds of a step.
CASES = ((1000, 20e-6), (64_000, 60e-6), (1_000_000, 1e-3))
LAYOUTS = ("8x1x1", "1x1x8")


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table; status 1 if makespans differ by more than MAX_OFF."""
    parser = argparse.ArgumentParser(prog="python -m bench simgrid-replay", description=__doc__)
    parser.add_argument("--steps", type=int, default=2000, help="of each rank; default: %(default)s")
    options = parser.parse_args(list(arguments))
    smpi = find_flavour(SIMULATED)
    rows, worst = [], 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "profile.json").write_text(json.dumps(_profile()))
        for size, step_s in CASES:
            recording, trace = folder / f"rec-{size}", folder / f"trace-{size}"
            write_recording(recording, options.steps, options.steps * step_s, size, meets=False)
            watched("export", recording, "--to", "simgrid-trace", "-o", trace)
            for layout in LAYOUTS:
                own_s, took_s, num = _simulated(recording, layout)
                replayed_s, replay_took_s = _replayed(smpi, folder, trace, layout)
                worst = max(worst, abs(own_s / replayed_s - 1))
                rows.append([
                    layout, format_bytes(size), num, format_seconds(own_s), format_seconds(replayed_s),
                    f"{100 * (own_s / replayed_s - 1):+.2f} %", format_seconds(took_s),
                    format_seconds(replay_took_s), f"{replay_took_s / took_s:.0f}",
                ])  # fmt: skip
                say(f"{size} bytes, {layout}: done")
    print_rows(
        ["layout", "message", "messages", "simulated", "SMPI", "off", "takes", "SMPI takes", "times as fast"],
        rows, left=["layout"],
    )  # fmt: skip
    return int(worst > MAX_OFF)


def _profile() -> dict[str, Any]:
    """Costs that both describe: one bandwidth, however many share it, and a latency that is awaited. What
    enters and leaves a node shares its memory in SimGrid's machine, which is faster than its link."""

    def level(bandwidth: float) -> dict[str, Any]:
        table = {str(n): bandwidth for n in (1, 2, 4, 8)}
        return {"protocols": [
            {"name": "eager", "latency_s": LATENCY_S, "bandwidth_bytes_per_s": table},
            {"name": "rendezvous", "min_bytes": EAGER_BYTES, "latency_s": LATENCY_S,
             "bandwidth_bytes_per_s": table, "sender_waits": True},
        ]}  # fmt: skip

    levels = {"intra_socket": level(4 * BANDWIDTH), "inter_node": level(BANDWIDTH)}
    return {"schema": "earlybird.profile/1", "id": "assumed", "levels": levels}


def _simulated(recording: Path, layout: str) -> tuple[float, float, int]:
    """The makespan, the processor time of simulating it without reading the recording, and the messages."""
    operations = operations_of(load_recording(recording))
    profile = profile_from_json(_profile())
    given = conditions_as_recorded(operations, profile, parse_layout(layout, "core"))
    begin_s = time.process_time()
    _, run = simulate_run(operations, given)
    return run.end_of_run_s, time.process_time() - begin_s, len(operations.bytes)


def _replayed(smpi: Any, folder: Path, trace: Path, layout: str) -> tuple[float, float]:
    """The makespan by SMPI, and its processor time, with reading the trace."""
    platform, hosts, shape = folder / f"{layout}.xml", folder / f"{layout}.txt", layout
    if not platform.exists():
        watched(
            "export", folder / "profile.json", "--to", "simgrid-platform", "--shape", shape, "-o", platform
        )
    nodes, sockets, cores = map(int, shape.split("x"))
    machine = simulated_machine(profile_from_json(_profile()), nodes, sockets, cores)
    of_ranks = cores_of_ranks(parse_layout(layout, "core"), machine)
    hosts.write_text("".join(f"{core}\n" for core in of_ranks))
    settings = smpi_configuration(machine, RANKS, hosts) | {
        # A message occupies sender and receiver for a third of its latency each, as in the simulation.
        "smpi/os": f"0:{LATENCY_S / 3}:0", "smpi/ois": f"0:{LATENCY_S / 3}:0",
        "smpi/or": f"0:{LATENCY_S / 3}:0", "smpi/replay": str(trace / "trace.txt"),
        "smpi/simulate-computation": "yes", "smpi/display-timing": "yes", "smpi/tmpdir": str(folder),
    }  # fmt: skip
    simulator = Path(smpi.mpiexec)
    command = [
        str(simulator), str(simulator.parent / "smpireplaymain"),
        *(f"--cfg={name}:{value}" for name, value in settings.items()), str(platform),
    ]  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, capture_output=True, text=True, env=smpi.environment())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = re.search(r"Simulated time: ([0-9.e+-]+) seconds", ran.stdout + ran.stderr)
    if ran.returncode or not found:
        raise SystemExit(f"SMPI ended with status {ran.returncode}: {ran.stderr[-2000:]}")
    return float(found[1]), took_s
