"""Why a job failed, by what mpiexec and the ranks printed."""

import itertools
import re
import signal

# The rank that failed, its host, and how. A long message is broken into lines anywhere between two words.
_FAILED_RANK = (
    # Intel Hydra
    r"RANK (?P<rank>[0-9]+) PID [0-9]+ RUNNING AT (?P<host>\S+)\s+=\s+(?P<how>\S[^\n]*)",
    # MPICH's Hydra numbers its ranks nowhere. The string is missing if other nodes failed, too.
    r"PID [0-9]+ RUNNING AT (?P<host>\S+)(?s:(?:(?!RUNNING AT).)*?)WITH THE EXIT STRING: (?P<how>[^\n]+)",
    r"PID [0-9]+ RUNNING AT (?P<host>\S+)\s+=\s+(?P<how>\S[^\n]*)",
    # Open MPI. Its "due to process rank ... calling abort" and its "Peer host" may be of a rank that failed
    # because another one did.
    r"process\s+rank\s+(?P<rank>[0-9]+)\s+with\s+PID\s+[0-9]+\s+on\s+node\s+(?P<host>\S+)\s+exited\s+on\s+"
    r"(?P<how>signal[^\n]+\))",
    r"\[(?P<host>[^\s:\]]+):[0-9]+\] \*\*\* Process received signal \*\*\*\s+\[\S+\] Signal: (?P<how>[^\n]+)",
)

_KILLED = "9 (Killed)"
_REASONS = (
    "KILLED BY SIGNAL",
    "EXIT STRING",
    "exited on signal",
    "BAD TERMINATION",
    "rror",
    "not enough",
)
# Open MPI: the host is often that of a rank which lost its peer.
_OPENMPI_ERROR = re.compile(r"\[[^\s:\]]+:[0-9]+\] \*\*\* (?:An error occurred in (?P<where>.+))?")
# Hydra, MPICH's and Intel's: its host is that of mpiexec, or of a proxy which lost mpiexec.
_HYDRA_LOST = re.compile(
    r"\[(?:mpiexec|proxy:\S+)@[^\s\]]+\] \w+ \(.+\): "
    r"(?:assert \(!closed\) failed|.*callback returned error|.*error waiting for)"
)


# Slurm: after the line with `Terminating`, tasks are named that it ended itself.
_FAILED_TASK = re.compile(r"srun: error: (?P<host>\S+): tasks? (?P<rank>[0-9,-]+): (?P<how>\S.*)")
_SLURM_ENDS = re.compile(r"srun: .*Terminating |slurmstepd\S*: error: \*\*\* (?:STEP|JOB) ")


_SIGNALLED = re.compile(
    r"(?:mpiexec|srun) reports that (?:a rank|rank [0-9]+) on (?P<host>\S+) failed: "
    # Without an exit string hydra prints the status, of which the low bits are a signal.
    r"(?P<how>.*(?:signal|SIGNAL|Killed|Segmentation|Bus error).*|EXIT CODE: (?:6|7|9|11|137|139)\b.*)"
)


def signalled_host(cause: str) -> tuple[str, str] | None:
    """Return the host of the rank that a signal ended, and the text of mpiexec on it; None for other
    causes."""
    found = _SIGNALLED.search(cause)
    return (found["host"], found["how"]) if found else None


def explain(status: int, text: str) -> str:
    """Return the rank that failed and its host if `text` names them, the most informative line of it, or a
    description of the status."""
    lines = [line.strip(" =|-*") for line in text.splitlines()]
    lines = [line for line in lines if line]
    if line := _first_with(("earlybird kernel:",), lines):
        return line.removeprefix("earlybird kernel:").strip()
    # Slurm's, the second with its reason.
    if line := _failed_task(lines) or _first_with(("CANCELLED AT",), lines):
        return line
    if failed := _failed_rank(text):
        return failed
    plain = [line for line in lines if not _OPENMPI_ERROR.match(line) and not _HYDRA_LOST.match(line)]
    if line := _first_with(_REASONS, plain) or _lost_peer(lines) or _first_with(("bort",), plain):
        return line
    if status < 0:
        return f"it was ended by {signal.Signals(-status).name}"
    return f"it ended with status {status}" + (f": {plain[-1]}" if plain else "")


def _lost_peer(lines: list[str]) -> str | None:
    """Return a sentence for messages that name only hosts which lost another host; None if there are none."""
    for line in lines:
        if (found := _OPENMPI_ERROR.match(line)) and found["where"]:
            return f"Open MPI does not say which rank failed: a rank reports an error in {found['where']}"
    if any(map(_HYDRA_LOST.match, lines)):
        return "mpiexec has no connection to one of the nodes and does not say which"
    return None


def _first_with(markers: tuple[str, ...], lines: list[str]) -> str | None:
    return next((line for marker in markers for line in lines if marker in line), None)


def _failed_task(lines: list[str]) -> str | None:
    before = itertools.takewhile(lambda line: not _SLURM_ENDS.match(line), lines)
    failed = [match for line in before if (match := _FAILED_TASK.fullmatch(line))]
    if len({match["host"] for match in failed}) != 1:
        return None
    first = failed[0]
    rank = f"rank {first['rank']}" if len(failed) == 1 and first["rank"].isdecimal() else "a rank"
    return f"srun reports that {rank} on {first['host']} failed: {first['how']}"


def _failed_rank(text: str) -> str | None:
    for pattern in _FAILED_RANK:
        found = [one.groupdict() for one in re.finditer(pattern, text)]
        # Intel Hydra also lists the ranks that it killed itself.
        found = [one for one in found if _KILLED not in one["how"]] or found
        hosts = {one["host"] for one in found}
        if len(hosts) == 1:
            rank = f"rank {found[0]['rank']}" if len(found) == 1 and found[0].get("rank") else "a rank"
            how = " ".join(found[0]["how"].split()).strip(" =")
            return f"mpiexec reports that {rank} on {hosts.pop()} failed: {how}"
    return None
