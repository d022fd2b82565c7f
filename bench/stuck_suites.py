"""Does `record --stuck` name what public suites of wrong MPI programs say is wrong with theirs?

Give the folders of MPI-CorrBench (github.com/tudasc/MPI-Corrbench) and of the programs that the generators of
the MPI Bugs Initiative (gitlab.com/MpiBugsInitiative) write. `--choose` runs their wrong programs with MPICH,
and lists at most 150 of those that hang in stuck_suites.txt, evenly over the kinds of error. Without it each
of the list is recorded with `--stuck 3s --stop`. The line that the sentence names first must be among those
that the program's header names, or of the calls that complete or match them; the verdict must be one of those
that the header's error allows. `--correct` records the correct programs with `--stuck 1s`: none of them may
be called deadlock, mismatch, missing or collective. The status is 1 if fewer than 95 % of the lines or 90 %
of the verdicts are right, or a correct program is accused. About ten minutes.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.commands import EARLYBIRD, say
from earlybird.machine.flavours import Flavour, find_flavour
from earlybird.present.render.terminal import print_rows

LIST = Path(__file__).with_name("stuck_suites.txt")
MAX_PROGRAMS, MIN_LINES, MIN_VERDICTS = 150, 0.95, 0.9
MAX_TRIED = 40  # of a kind of error
NATIVE_LIMIT_S, RECORD_LIMIT_S = 3.0, 40.0
# An answer on stderr begins with its verdict.
ANSWER = re.compile(
    r"^(Deadlock|Buffering|Mismatch|Missing|Collective|Partitioned|One-sided|Finalize|Computing|Stopped|Ended"
    r"|Unreachable|Unknown): ", re.MULTILINE,
)  # fmt: skip
ACCUSING = frozenset({"deadlock", "mismatch", "missing", "collective"})
_OPENMP = ["-fopenmp", "-DNUM_THREADS=2", "-DBUFFER_LENGTH_INT=10", "-DUSE_DISTURBED_THREAD_ORDER"]
# What a header says is wrong, and the verdicts that agree with it: the first that is found counts.
_OF_MESSAGES = frozenset({"missing", "mismatch", "deadlock", "buffering"})
_VERDICTS: tuple[tuple[str, frozenset[str]], ...] = (
    (r"(?is)(?=.*MPI_\w*(send|recv)).*collective mis\w*match", _OF_MESSAGES | {"collective"}),
    (r"(?i)communicator mis\w*match in collective|collective mis\w*match|RootMatching|reduce-root",
     frozenset({"collective"})),
    (r"TagMatching|(?i:-tag\b)", frozenset({"mismatch"})),
    (r"CommunicatorMatching|(?i:-communicator\b)", frozenset({"mismatch", "collective"})),
    (r"(?i)p2p mis\w*match", _OF_MESSAGES),
    (r"", _OF_MESSAGES | {"collective", "ended", "one-sided", "finalize"}),
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """A program of a suite.

    Attributes
    ----------
    name : the end of its path that tells it from the others.
    label : text of its header that says what is wrong, behind the name.
    lines : that its header names.
    """

    path: Path
    name: str
    label: str
    num_ranks: int
    lines: frozenset[int]
    is_correct: bool

    @property
    def kind(self) -> str:
        """The kind of error by the name: what comes before the calls."""
        folder, _, name = self.name.rpartition("/")
        return f"{folder}/{re.split(r'[_-]', name)[0]}"

    @property
    def verdicts(self) -> frozenset[str]:
        """The verdicts that agree with the label."""
        return next(verdicts for pattern, verdicts in _VERDICTS if re.search(pattern, self.label))


@dataclass(frozen=True)
class Outcome:
    """What `record --stuck` said of a program; `line` 0: none."""

    program: Program
    verdict: str
    line: int
    sentence: str
    is_line_right: bool

    @property
    def is_verdict_right(self) -> bool:
        return self.verdict in self.program.verdicts


def main(arguments: Sequence[str] = ()) -> int:
    """Record the programs and print a table; 1 if too few are named rightly."""
    parser = argparse.ArgumentParser(prog="python -m bench stuck-suites", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--choose", action="store_true", help=f"write {LIST.name}")
    parser.add_argument("--correct", action="store_true", help="record the correct programs")
    parser.add_argument("--mpi", default="mpich", help="a flavour; default mpich")
    parser.add_argument("--jobs", type=int, default=1, help="programs that run side by side; default 1")
    parser.add_argument(
        "--part",
        type=_part,
        default=(1, 1),
        metavar="K/N",
        help="every Nth program, from the Kth; default 1/1",
    )
    parser.add_argument("--only", default="", metavar="PATTERN", help="programs whose names match")
    options = parser.parse_args(list(arguments))
    missing = [folder for folder in options.folders if not folder.is_dir()]
    if missing:
        say(f"stuck-suites: there is no folder {missing[0]}; give the folders of the suites")
        return 2
    flavour = find_flavour(options.mpi)
    programs = [each for each in _programs(options.folders) if re.search(options.only, each.name)]
    with (
        tempfile.TemporaryDirectory(prefix="stuck-suites-") as folder,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        if options.choose:
            return _choose(flavour, [each for each in programs if not each.is_correct], Path(folder), pool)
        if options.correct:
            chosen = [program for program in programs if program.is_correct]
        else:
            names = LIST.read_text().split()
            chosen = [program for program in programs if program.name in names]
            absent = len(set(names) - {program.name for program in programs}) if not options.only else 0
            if absent:
                say(f"{absent} programs of the list are not in these folders")
        record = _accusation if options.correct else _outcome
        first, step = options.part
        chosen = chosen[first - 1 :: step]
        results = [
            each for each in pool.map(lambda program: record(flavour, program, Path(folder)), chosen) if each
        ]
    return _report_correct(results) if options.correct else _report(results)


def _part(text: str) -> tuple[int, int]:
    """Return K and N of `K/N`."""
    first, _, step = text.partition("/")
    if not (first.isdecimal() and step.isdecimal() and 1 <= int(first) <= int(step)):
        raise argparse.ArgumentTypeError(f"{text!r} is not K/N with K from 1 to N, such as 1/4")
    return int(first), int(step)


def _programs(folders: Iterable[Path]) -> Iterator[Program]:
    """Yield the C programs of suites that say what is wrong with them, or that nothing is."""
    for folder in folders:
        for path in sorted(folder.rglob("*.c")):
            text = path.read_text(errors="replace")
            if "mpi.h" not in text and "mpitest.h" not in text:
                continue
            tests = re.search(r"BEGIN_MBI_TESTS(.*?)END_MBI_TESTS", text, re.DOTALL)
            if tests:
                label = tests[1]
                ranks = re.search(r"-np (\d+)", label)
                name = path.name
                is_correct = "ERROR" not in label
                num_ranks = int(ranks[1]) if ranks else 2
            else:
                name = "/".join(path.parts[-3:])
                comment = re.search(r"/\*.*?\*/", text, re.DOTALL)
                is_correct = "correct" in path.parts
                label = comment[0] if comment and not is_correct else ""
                num_ranks = 2
            lines = frozenset(_lines(label)) if not is_correct else frozenset()
            yield Program(path, name, f"{path.stem} {label}", num_ranks, lines, is_correct)


def _lines(label: str) -> Iterator[int]:
    """Yield the numbers of lines in a label: `x.c:57`, `line 72`, `(line 16/19)`, `(19 and 24)`."""
    for named in re.findall(r"\.c:(\d+)", label):
        yield int(named)
    for named in re.findall(r"(?i)lines?:? *(\d+(?:(?:[/,; ]|and|or)+\d+)*)|\((\d+ and \d+)\)", label):
        yield from map(int, re.findall(r"\d+", named[0] or named[1]))


def _build(flavour: Flavour, program: Program, folder: Path) -> Path | None:
    """Return the compiled program; None if it cannot be compiled."""
    binary = folder / f"{abs(hash(str(program.path)))}"
    include = next((parent / "include" for parent in program.path.parents if parent.name == "correct"), None)
    command = [
        str(flavour.mpicc), "-g", "-w", *(_OPENMP if "openmp" in program.path.parts else []),
        *([f"-I{include}"] if include else []), str(program.path), "-o", str(binary), "-lm",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, env=_environment(flavour))
    return binary if done.returncode == 0 else None


def _environment(flavour: Flavour) -> dict[str, str]:
    folder = Path(flavour.mpicc).parent
    return os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "OMP_NUM_THREADS": "2"}


def _hangs(flavour: Flavour, program: Program, folder: Path) -> bool:
    """Return whether a program does not end without the recorder."""
    binary = _build(flavour, program, folder)
    if binary is None:
        return False
    command = ["mpiexec", "-n", str(program.num_ranks), str(binary)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        env=_environment(flavour), start_new_session=True, cwd=folder,
    ) as process:  # fmt: skip
        try:
            process.wait(NATIVE_LIMIT_S)
            return False
        except subprocess.TimeoutExpired:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            return True
        finally:
            binary.unlink(missing_ok=True)


def _choose(flavour: Flavour, programs: Sequence[Program], folder: Path, pool: ThreadPoolExecutor) -> int:
    """List programs that hang: as many of each kind as there is place for."""
    of_kind: dict[str, list[Program]] = {}
    for program in programs:
        if re.search(r"\bsleep *\(", program.path.read_text(errors="replace")):
            continue  # it may only take long
        of_kind.setdefault(program.kind, []).append(program)
    programs = [each for of_one in of_kind.values() for each in of_one[:: -(-len(of_one) // MAX_TRIED)]]
    hanging = [
        program
        for program, hangs in zip(
            programs, pool.map(lambda each: _hangs(flavour, each, folder), programs), strict=True
        )
        if hangs
    ]
    kinds: dict[str, list[str]] = {}
    for program in hanging:
        kinds.setdefault(program.kind, []).append(program.name)
    chosen: list[str] = []
    while len(chosen) < min(MAX_PROGRAMS, len(hanging)):
        for names in kinds.values():
            if names and len(chosen) < MAX_PROGRAMS:
                chosen.append(names.pop(len(names) // 2))
    LIST.write_text("".join(f"{name}\n" for name in sorted(chosen)))
    say(f"{len(hanging)} of {len(programs)} programs hang; {len(chosen)} are in {LIST.name}")
    return 0


def _recorded(
    flavour: Flavour, program: Program, folder: Path, *options: str
) -> tuple[dict[str, object], str] | None:
    """Return the JSON of `record --stuck`, and its messages; None if the program cannot be compiled."""
    binary = _build(flavour, program, folder)
    if binary is None:
        return None
    recording = folder / f"rec-{binary.name}"
    command = [
        str(EARLYBIRD), "record", "-o", str(recording), "--mpi", flavour.name, *options, "--json", "--",
        "mpiexec", "-n", str(program.num_ranks), str(binary),
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        start_new_session=True, cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    ) as process:  # fmt: skip
        try:
            output, errors = process.communicate(timeout=RECORD_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            output, errors = process.communicate()
    shutil.rmtree(recording, ignore_errors=True)
    binary.unlink(missing_ok=True)
    start = output.rfind("\n{\n") + 1 if not output.startswith("{") else 0
    try:
        return json.loads(output[start:]), errors
    except ValueError:
        return {}, errors


def _outcome(flavour: Flavour, program: Program, folder: Path) -> Outcome | None:
    recorded = _recorded(flavour, program, folder, "--stuck", "3s", "--stop")
    if recorded is None:
        say(f"{program.name}: cannot be compiled")
        return None
    answer = recorded[0]
    sentence, verdict = str(answer.get("sentence", "")), str(answer.get("verdict", "nothing"))
    named = re.search(r"\.c:(\d+)", sentence)
    line = int(named[1]) if named else 0
    outcome = Outcome(program, verdict, line, sentence, _is_line_right(program, line))
    if not (outcome.is_line_right and outcome.is_verdict_right):
        wrong = ([] if outcome.is_line_right else ["line"]) + (
            [] if outcome.is_verdict_right else ["verdict"]
        )
        say(f"{program.name}: {' and '.join(wrong)}: labelled {sorted(program.lines)}, "
            f"{'/'.join(sorted(program.verdicts))}: {sentence or recorded[1].strip()[-300:]}")  # fmt: skip
    return outcome


def _is_line_right(program: Program, line: int) -> bool:
    """Return whether a line is labelled or is its partner: a call of the same operation, one that completes
    it, or one that could match it. Without labelled lines any line of a call is right."""
    if not line:
        return False
    text = program.path.read_text(errors="replace").splitlines()
    # A line without a call means the next one that has one: sources were formatted after they were labelled.
    lines = {
        next((k for k in range(each, len(text) + 1) if _calls_at(text, k)), each) for each in program.lines
    }
    if not program.lines or line in lines | program.lines:
        return True
    calls = _calls_at(text, line)
    labelled = {call for each in lines for call in _calls_at(text, each)}
    labelled |= set(re.findall(r"MPI_(\w+) at ", program.label))  # some name the line before that of the call
    return bool(calls) and any(_are_partners(one, other) for one in calls for other in labelled)


def _calls_at(text: Sequence[str], line: int) -> set[str]:
    return set(re.findall(r"MPI_(\w+) *\(", text[line - 1])) if line <= len(text) else set()


def _are_partners(one: str, other: str) -> bool:
    """Return whether two calls match each other, or one completes the other."""
    pair = (_family(one), _family(other))
    return pair[0] == pair[1] or set(pair) == {"send", "receive"} or bool({"wait", "start"} & set(pair))


def _family(call: str) -> str:
    """Return what a call is: `send`, `receive`, `wait`, `start`, or its operation."""
    name = call.lower().removesuffix("_init")
    for completing in ("wait", "start"):
        if name.startswith(completing):
            return completing
    if name in ("recv", "irecv", "mrecv", "probe", "mprobe"):
        return "receive"
    if name in ("send", "isend", "ssend", "issend", "bsend", "ibsend", "rsend", "irsend"):
        return "send"
    return name.removeprefix("i")


def _accusation(flavour: Flavour, program: Program, folder: Path) -> tuple[str, str] | None:
    recorded = _recorded(flavour, program, folder, "--stuck", "1s")
    if recorded is None:
        return None
    # Also those after which the ranks got on.
    verdicts = [found.lower() for found in ANSWER.findall(recorded[1])]
    accusing = [verdict for verdict in verdicts if verdict in ACCUSING]
    if verdicts:
        say(f"{program.name}: {', '.join(verdicts)}: {recorded[0].get('sentence')}")
    return program.name, (accusing or verdicts or [str(recorded[0].get("verdict", ""))])[0]


def _report(outcomes: Sequence[Outcome]) -> int:
    """Print how many are right by kind of error."""
    kinds: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        kinds.setdefault(outcome.program.kind, []).append(outcome)
    rows = [
        [
            kind, str(len(of_kind)), str(sum(each.is_line_right for each in of_kind)),
            str(sum(each.is_verdict_right for each in of_kind)),
            ", ".join(f"{verdict} {num}" for verdict, num in Counter(e.verdict for e in of_kind).items()),
        ]
        for kind, of_kind in (*sorted(kinds.items()), ("all", list(outcomes)))
    ]  # fmt: skip
    print_rows(["kind", "programs", "line", "verdict", "verdicts"], rows, left=["kind", "verdicts"])
    num = max(len(outcomes), 1)
    lines = sum(each.is_line_right for each in outcomes) / num
    verdicts = sum(each.is_verdict_right for each in outcomes) / num
    return int(lines < MIN_LINES or verdicts < MIN_VERDICTS)


def _report_correct(results: Sequence[tuple[str, str]]) -> int:
    """Print which verdicts correct programs got."""
    counts = Counter(verdict or "none" for _, verdict in results)
    print_rows(["verdict", "programs"], [[verdict, str(num)] for verdict, num in counts.most_common()],
               left=["verdict"])  # fmt: skip
    return int(any(verdict in ACCUSING for _, verdict in results))
