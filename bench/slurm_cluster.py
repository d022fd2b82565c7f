"""What works in a real Slurm: own daemons, whose nodes have other names than they give themselves.

Jobs measure, check, and run the printed scripts; skipped where Slurm's daemons are not installed.
"""

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.commands import EARLYBIRD, built_mpis, say
from earlybird.present.render.terminal import print_rows
from tests.slurm import DOMAIN, Slurm, Unavailable, running

NODES = ("n1", "n2", "n3")
_BAD = "n2"  # has little shared memory
_LIMIT_S = 600.0
_MEASURE = (
    "measure", "pingpong", "--sizes", "8,64KiB", "--launches", "1", "--budget", "2s", "--stall-limit", "120s",
    "--quiet",
)  # fmt: skip
# An earlier command of the name on the PATH of a job.
_OTHER = "#!/bin/sh\necho 'another earlybird was called' >&2\nexit 9\n"


class Unexpected(Exception):
    """What a case saw that it should not."""


@dataclass(frozen=True)
class Place:
    """Where a case runs: a Slurm, a folder of its own, and an MPI."""

    slurm: Slurm
    folder: Path
    mpi: str

    def run(self, *command: Any, statuses: Sequence[int] = (0,), env: dict[str, str] | None = None) -> str:
        """Return what a command printed; raises Unexpected for another exit status."""
        ran = self.slurm.run(*command, timeout=_LIMIT_S, cwd=self.folder, env=env or {})
        if ran.returncode not in statuses:
            raise Unexpected(f"status {ran.returncode}: {ran.stderr.strip()[-400:]}")
        return ran.stdout + ran.stderr

    def earlybird(
        self, *arguments: Any, nodes: Sequence[str] = ("-N2",), statuses: Sequence[int] = (0,)
    ) -> str:
        """Run `earlybird ARGUMENTS...` in an allocation of `nodes`."""
        command = [EARLYBIRD, *arguments, "--mpi", self.mpi, "--launcher", "srun"]
        return self.run("salloc", "-Q", "--exclusive", *nodes, *command, statuses=statuses)

    def launches(self, run: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / run / "launches.ndjson").read_text().splitlines()]

    def described(self, run: str) -> str:
        """The plugin of the launches of a run, and the hosts of their ranks; Unexpected for foreign names."""
        launches = self.launches(run)
        plugins = {word for one in launches for word in one["command_line"] if word.startswith("--mpi=")}
        hosts = {entry["host"] for one in launches for entry in one["placement"]}
        if not hosts <= set(NODES):
            raise Unexpected(f"the ranks are on {', '.join(sorted(hosts))}")
        return f"{' '.join(sorted(plugins))} on {' '.join(sorted(hosts))}"


def _measured(place: Place) -> str:
    place.earlybird(*_MEASURE, "--levels", "intra_socket,inter_node", "-o", "run")
    return place.described("run")


def _with_arguments(place: Place) -> str:
    """An option of srun alone, and a plugin that replaces the chosen one."""
    arguments = f"--comment=bench --mpi={'pmix' if place.mpi == 'openmpi' else 'pmi2'}"
    place.earlybird(*_MEASURE, "--levels", "intra_socket", "--srun", arguments, "-o", "with")
    recorded = {one.get("srun") for one in place.launches("with")}
    if recorded != {arguments}:
        raise Unexpected(f"the launches record {recorded}")
    refused = place.earlybird(*_MEASURE, "--srun", "--nodel=n1", "-o", "not", statuses=(2,))
    if "--srun has --nodel" not in refused:
        raise Unexpected(refused)
    return place.described("with")


def _heterogeneous(place: Place) -> str:
    """The first component has one node, the second has two."""
    components = ("-N1", ":", "--exclusive", "-N2")
    arguments = (*_MEASURE, "--levels", "inter_node", "--srun", "--het-group=1", "-o", "het")
    place.earlybird(*arguments, nodes=components)
    return place.described("het")


def _checked(place: Place) -> str:
    """One node has little shared memory; what the check names, srun excludes and scontrol drains."""
    printed = place.earlybird("check", "-o", "checked", nodes=("-N3",), statuses=(1,))
    bad = (place.folder / "checked" / "bad.txt").read_text().split()
    if _BAD not in bad or not set(bad) < set(NODES):
        raise Unexpected(f"to be left out: {' '.join(bad)}")
    (line,) = [one for one in printed.splitlines() if one.startswith("next: ")]
    exclude = shlex.split(line)[2].rstrip(",")
    ok = (place.folder / "checked" / "ok.txt").read_text().split()
    left = ["srun", "-N", len(ok), "-n", len(ok)]
    for option in (exclude, "--exclude=checked/bad.txt", "--nodelist=checked/ok.txt"):
        names = place.run("salloc", "-Q", "-N3", "--exclusive", *left, option, "printenv", "SLURMD_NODENAME")
        if sorted(names.split()) != sorted(ok):
            raise Unexpected(f"srun {option} ran on {names.split()}")
    place.run("sh", "-c", line.rpartition("administrator: ")[2])
    states = place.run("sinfo", "-h", "-N", "-n", ",".join(bad), "-o", "%T").split()
    for node in bad:
        place.run("scontrol", "update", f"nodename={node}", "state=resume")
    if set(states) != {"drained"}:
        raise Unexpected(f"after scontrol update, {' '.join(bad)} is {' '.join(states)}")
    return f"{' '.join(bad)} named, excluded by srun and drained"


def _check_script(place: Place) -> str:
    """`check --print-script slurm` on all nodes, with another `earlybird` first on PATH."""
    script = place.run(EARLYBIRD, "check", "--mpi", place.mpi, "-o", "by script", "--print-script", "slurm")
    place.run("sbatch", "--wait", "-N3", _script(place, script), statuses=(1,), env=_other_first(place))
    bad = (place.folder / "by script" / "bad.txt").read_text().split()
    if _BAD not in bad:
        raise Unexpected(f"to be left out: {' '.join(bad)}")
    return f"{' '.join(bad)} named by the job"


def _measure_script(place: Place) -> str:
    """A run that the script measures and fits; submitted again, it continues it."""
    options = ("--mpi", place.mpi, "--levels", "intra_socket,inter_node", "-o", "a run")
    script = place.run(EARLYBIRD, *_MEASURE, *options, "--print-script", "slurm")
    for _ in range(2):
        place.run("sbatch", "--wait", _script(place, script), env=_other_first(place))
    if not (place.folder / "profile.json").exists():
        raise Unexpected("the script wrote no profile")
    return f"{place.described('a run')}, fitted"


def _script(place: Place, text: str) -> Path:
    path = place.folder / "job.sh"
    path.write_text(text)
    return path


def _other_first(place: Place) -> dict[str, str]:
    folder = place.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "earlybird").write_text(_OTHER)
    (folder / "earlybird").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin:/usr/sbin:/sbin"}


CASES: dict[str, Callable[[Place], str]] = {
    "measure pingpong": _measured,
    "srun arguments": _with_arguments,
    "heterogeneous job": _heterogeneous,
    "check": _checked,
    "script of check": _check_script,
    "script of measure": _measure_script,
}


def main(arguments: Sequence[str] = ()) -> int:
    """Status 1 if a case is not as expected; 0 if there is no Slurm to try."""
    parser = argparse.ArgumentParser(prog="python -m bench slurm-cluster", description=__doc__)
    parser.add_argument("--mpi", nargs="+", help="[default: all built]")
    parser.add_argument("--case", nargs="+", choices=list(CASES), default=list(CASES))
    asked = parser.parse_args(arguments)
    rows: list[list[Any]] = []
    try:
        with running(NODES, DOMAIN) as slurm:
            version = slurm.run("sinfo", "--version").stdout.strip()
            shared_memory = ("mount", "-o", "remount,size=64m", "/dev/shm")
            slurm.run("srun", f"--nodelist={_BAD}", *shared_memory)
            for mpi in asked.mpi or built_mpis():
                for name in asked.case:
                    say(f"{version}, {mpi}: {name}")
                    rows.append([mpi, name, *_outcome(CASES[name], slurm, mpi)])
            left = slurm.jobs()
    except Unavailable as error:
        print(f"slurm-cluster: skipped, {error}", file=sys.stderr)
        return 0
    print(
        f"{version}; {len(NODES)} nodes that name themselves {', '.join(f'{one}{DOMAIN}' for one in NODES)}"
    )
    print_rows(["MPI", "case", "as expected", "seen"], rows, left=["MPI", "case", "as expected", "seen"])
    if left:
        print(f"jobs that did not end: {' '.join(left)}")
    return int(bool(left) or any(row[2] != "yes" for row in rows))


def _outcome(case: Callable[[Place], str], slurm: Slurm, mpi: str) -> tuple[str, str]:
    with tempfile.TemporaryDirectory(prefix="case-", dir=slurm.folder) as folder:
        try:
            return "yes", case(Place(slurm, Path(folder), mpi))
        except Unexpected as error:
            return "NO", " ".join(str(error).split())


if __name__ == "__main__":
    raise SystemExit(main())
