"""What `earlybird check` finds on virtual clusters of 4 and 8 nodes: planted faults, several slow nodes at
once, and nothing on clean ones.

Also the time that it plans for 256 nodes, and the time it takes on a simulated machine.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.commands import EARLYBIRD, say, virtual_cluster
from bench.node_faults import FAULTS, Fault, planted, slow_node
from earlybird.data.check import Check, check_from_json
from earlybird.data.units import format_seconds
from earlybird.launch.cluster import state
from earlybird.present.render.terminal import print_table

SIZES, CLEAN_CHECKS = (4, 8), 50
_FAST, _SLOW, _MANY = "200mbit", "100mbit", 8  # two cores carry the links of eight nodes at the lower rate
MAX_S = 120.0  # for 256 nodes
_SIMULATED = (16, 32)


def main(arguments: Sequence[str] = ()) -> int:
    """Status 1 if a fault is not found, another node or link is named, or a clean check is not clean."""
    parser = argparse.ArgumentParser(prog="python -m bench check-faults", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--mpi", default="mpich", help="[default: %(default)s]")
    parser.add_argument("--clean", type=int, default=CLEAN_CHECKS, help="clean checks, half on each cluster")
    parser.add_argument("--fault", choices=list(FAULTS), nargs="*", default=list(FAULTS))
    parser.add_argument("--simulate", type=int, nargs="*", default=_SIMULATED, help="simulated nodes")
    parser.add_argument(
        "--slow", type=int, nargs="*", default=(), metavar="COUNT",
        help="of the nodes of each cluster, that many drawn at random send at half the rate",
    )  # fmt: skip
    asked = parser.parse_args(arguments)
    rows: list[list[Any]] = []
    good = True
    for nodes in asked.nodes:
        for name in asked.fault:
            row, found = _fault(FAULTS[name], nodes, asked.mpi)
            good &= found
            rows.append(row)
    if rows:
        print_table(
            ["fault", "nodes", "found", "also named", "time"], rows, left=["fault", "found", "also named"]
        )
    for nodes in asked.nodes:
        if asked.slow:
            good &= _slow_nodes(nodes, asked.slow, asked.mpi)
    if asked.clean:
        good &= _clean(asked.nodes, asked.clean, asked.mpi)
    for nodes in asked.simulate:
        good &= _simulated(nodes)
    return int(not good)


def run_check(*arguments: Any, env: dict[str, str] | None = None) -> tuple[Check, float]:
    """The check and its time; SystemExit if it could not complete."""
    begin_s = time.monotonic()
    command = [str(EARLYBIRD), "check", *map(str, arguments), "--quiet", "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | (env or {}))
    if not ran.stdout:
        raise SystemExit(f"earlybird check ended with status {ran.returncode}: {ran.stderr.strip()}")
    return check_from_json(json.loads(ran.stdout)), time.monotonic() - begin_s


def _rate(nodes: int) -> str:
    return _SLOW if nodes >= _MANY else _FAST


def _fault(fault: Fault, nodes: int, mpi: str) -> tuple[list[Any], bool]:
    say(f"{mpi}: {fault.name} among {nodes} nodes")
    with virtual_cluster(nodes, _rate(nodes)) as name, tempfile.TemporaryDirectory() as folder:
        try:
            with planted(fault, state.find(name), Path(folder)) as environment:
                check, spent_s = run_check("--mpi", mpi, "--launcher", f"cluster:{name}", env=environment)
        except OSError as error:
            return [fault.name, nodes, f"cannot be planted: {error}", "", ""], False
    found = (*check.findings, *check.undecided)  # undecided beside other work
    named = [one for one in found if one.hosts == fault.hosts and one.measure == fault.measure]
    others = [one for one in found if not set(one.hosts) & set(fault.hosts)]
    text = f"{named[0].value_text}, others {named[0].expected_text}" if named else "NOT FOUND"
    row = [fault.name, nodes, text, "; ".join(one.sentence for one in others), format_seconds(spent_s)]
    return row, bool(named) and not others


def _slow_nodes(nodes: int, counts: Sequence[int], mpi: str) -> bool:
    """Print which nodes are named if several send at half the rate; return whether exactly these are."""
    rows, good = [], True
    for count in counts:
        say(f"{mpi}: {count} slow of {nodes} nodes")
        slow = sorted(random.Random(nodes * 100 + count).sample(range(nodes), count))
        with virtual_cluster(nodes, _rate(nodes)) as name:
            for node in slow:
                slow_node(state.find(name), node)
            check, spent_s = run_check("--mpi", mpi, "--launcher", f"cluster:{name}")
        expected = {f"node{node}" for node in slow}
        named = {host for finding in check.findings for host in finding.hosts}
        is_right = named == expected and not check.undecided
        undecided = {host for finding in check.undecided for host in finding.hosts}
        good &= is_right
        rows.append([
            nodes, " ".join(sorted(expected)), "yes" if is_right else " ".join(sorted(named)) or "nothing",
            " ".join(sorted(undecided)), format_seconds(spent_s),
        ])  # fmt: skip
    print_table(["nodes", "slow", "exactly these named", "undecided", "time"], rows)
    return good


def _clean(sizes: Sequence[int], count: int, mpi: str) -> bool:
    wrong: list[str] = []
    for nodes in sizes:
        say(f"{mpi}: {count // len(sizes)} clean checks of {nodes} nodes")
        twice, times_s = 0, []
        with virtual_cluster(nodes, _rate(nodes)) as name:
            for _ in range(count // len(sizes)):
                check, spent_s = run_check("--mpi", mpi, "--launcher", f"cluster:{name}")
                wrong += [one.sentence for one in (*check.findings, *check.undecided)]
                twice += check.launches > 1
                times_s.append(spent_s)
        print(
            f"{len(times_s)} clean checks of {nodes} nodes: {twice} measured a suspicion again, {len(wrong)} "
            f"false alarms, at most {format_seconds(max(times_s))}"
        )
    for sentence in wrong:
        print(f"false alarm: {sentence}")
    return not wrong


def _simulated(nodes: int) -> bool:
    """The time that ranks of a simulated machine spend, next to the planned one."""
    say(f"{nodes} simulated nodes")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        check, spent_s = run_check("--launcher", f"simgrid:{nodes}x1x1", "-o", run)
        lines = (run / "samples.ndjson").read_text().splitlines()
    iterations = [len(json.loads(line)["times_s"]) for line in lines]
    simulated_s = sum(sum(json.loads(line)["times_s"]) for line in lines)
    print(
        f"{nodes} simulated nodes: planned at most {format_seconds(check.planned_s)}, of it messages "
        f"{format_seconds(simulated_s)} in {sum(iterations)} iterations; simulating took "
        f"{format_seconds(spent_s)}"
    )
    for one in check.findings:
        print(f"false alarm: {one.sentence}")
    return simulated_s <= check.planned_s <= MAX_S and not check.findings


if __name__ == "__main__":
    raise SystemExit(main())
