"""Which tests are left out of a session, and why: one line per cause; and which were run a second time."""

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from earlybird.machine.flavours import WHEELS

CACHE_KEY = "earlybird/passed"
STATUS_KEY = "earlybird/status"  # how the last session ended, for .ci/run
ALREADY_PASSED = "passed already, says the file of --already-passed"
ON_ONE_MPI = "run on one MPI, for it does not depend on the MPI (--every-mpi)"
REASON_LENGTH, SECOND_RUN_LENGTH = 160, 300
MEASURES_TIME = "measures_time"  # the marker; the plugin rerunfailures runs these once more
_NATIVE_OF_MPI = re.compile(rf"(tests/native/\w+\.py)::\w+\[(?:.*-)?({'|'.join(WHEELS)})\b")


def not_built(mpi: str) -> str:
    """Why tests of this MPI do not run."""
    return f"{mpi} is not built (make setup MPI={mpi})"


def split(
    items: Iterable, built: Sequence[str], passed: Container[str], every_mpi: bool = False
) -> tuple[list, list, Counter[str]]:
    """Items to run, items to leave out, and the number of the latter by cause.

    A test that takes the fixture `mpi` needs that MPI; one marked `one_mpi` runs on the first that is built,
    unless `every_mpi`; one whose id is in `passed` need not run again.
    """
    selected, left_out, causes = [], [], Counter()
    for item in items:
        mpi = item.callspec.params.get("mpi") if hasattr(item, "callspec") else None
        cause = None
        if mpi is not None and mpi not in built:
            cause = not_built(mpi)
        elif mpi is not None and mpi != built[0] and not every_mpi and item.get_closest_marker("one_mpi"):
            cause = ON_ONE_MPI
        elif item.nodeid in passed:
            cause = ALREADY_PASSED
        if cause is None:
            selected.append(item)
        else:
            left_out.append(item)
            causes[cause] += 1
    return selected, left_out, causes


def read_passed(path: str | None) -> frozenset[str]:
    """The ids in a file that an earlier session left in its cache; none without a file."""
    return frozenset(json.loads(Path(path).read_text())) if path else frozenset()


def passed_ids(stats: Mapping[str, Sequence]) -> list[str]:
    """Ids of the tests that passed and whose fixtures ended without an error."""
    failed = {report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())}
    return sorted({report.nodeid for report in stats.get("passed", ())} - failed)


def second_run_lines(stats: Mapping[str, Sequence]) -> list[str]:
    """The tests that failed and were run a second time, each with what failed, in alphabetical order."""
    causes = {}
    for report in stats.get("rerun", ()):
        crash = getattr(report.longrepr, "reprcrash", None)
        first_line = (crash.message if crash else str(report.longrepr)).strip().partition("\n")[0]
        causes.setdefault(report.nodeid, first_line)
    return [f"{name}: {cause}"[:SECOND_RUN_LENGTH] for name, cause in sorted(causes.items())]


def unit_of(test_id: str) -> str:
    """What one process runs as a whole: a file, and of a file of tests/native what is for one MPI.

    Its tests for one MPI share nothing with those for another, and the longest file would decide when a
    session with several MPIs ends.
    """
    of_mpi = _NATIVE_OF_MPI.match(test_id)
    return " ".join(of_mpi.groups()) if of_mpi else test_id.partition("::")[0]


def skip_causes(stats: Mapping[str, Sequence]) -> Counter[str]:
    """The number of skipped tests by the reason that each gives."""
    output = (report.longrepr for report in stats.get("skipped", ()))
    reasons = (one[2] for one in output if isinstance(one, tuple))
    return Counter(" ".join(reason.removeprefix("Skipped: ").split()) for reason in reasons)


def cause_lines(causes: Mapping[str, int]) -> list[str]:
    """A line per cause, the most frequent first."""
    ordered = sorted(causes.items(), key=lambda one: (-one[1], one[0]))
    return [f"{count:6d}  {cause[:REASON_LENGTH]}" for cause, count in ordered]
