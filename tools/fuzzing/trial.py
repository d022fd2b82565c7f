"""Runs a command of earlybird in a forked process with limits, and judges what it did."""

import contextlib
import io
import json
import math
import os
import re
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from earlybird.cli import main
from earlybird.data.errors import FAILED_VERDICT
from earlybird.data.units import MAX_S

MAX_CPU_S, MAX_WALL_S = 10, 20
MAX_BYTES = 1 << 30
# The address space may grow by more than what may be resident: what is reserved and not touched is free.
_MAX_ADDRESSES = 3 * MAX_BYTES
_MAX_OUTPUT_BYTES = 1 << 28
_INTERNAL_ERROR = 70
# Commands whose status 1 is what they found.
_VERDICTS = ("compare", "check")
# Characters that a terminal, a browser or a parser of XML may obey: C0 and C1, except for tab and
# newline, and those that turn the direction of text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Of a failure: a verdict has none.
_SENTENCE = re.compile("^earlybird: ", re.MULTILINE)
_WARNING = re.compile(r"^(\S+:\d+): (\w*Warning): (.*)$", re.MULTILINE)
# Words of the keys of --json whose values may be negative: differences, and shares of them.
_SIGNED = frozenset([
    "difference", "differences", "saved", "change", "changes", "error", "errors", "effect", "effects",
    "offset", "lead", "residual", "intercept", "ahead", "slope", "skew", "peer", "tag", "drift", "seed",
    "coefficient", "coefficients", "exponent", "exponents", "correlation", "gain", "earlier", "later",
    "delta", "log", "bias", "score", "estimate",
])  # fmt: skip
# No count of a program that could have run.
_MAX = 1e30
_RANKS = ("rank", "src", "dst", "node", "socket", "ranks", "nodes")


@dataclass(frozen=True)
class Trial:
    """What a command did: its exit status or signal, time, memory and outputs, and the paths it left."""

    status: int
    signal: int
    seconds: float
    peak_bytes: int
    stdout: bytes
    stderr: bytes
    left: tuple[str, ...]


def run(folder: Path, arguments: Sequence[str], limit_s: float = MAX_WALL_S) -> Trial:
    """Run `earlybird ARGUMENTS` in `folder` in a fork of this process."""
    before = set(_paths(folder))
    out, err = (os.memfd_create(name) for name in ("stdout", "stderr"))
    begin = time.monotonic()
    process = os.fork()
    if process == 0:
        try:
            _child(folder, arguments, out, err)
        finally:
            os._exit(_INTERNAL_ERROR)
    handle = os.pidfd_open(process)
    if not select.select([handle], [], [], limit_s)[0]:
        os.kill(process, signal.SIGKILL)
    _, ended, usage = os.wait4(process, 0)
    os.close(handle)
    texts = []
    for descriptor in (out, err):
        texts.append(os.pread(descriptor, _MAX_OUTPUT_BYTES, 0))
        os.close(descriptor)
    number = os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else 0
    left = tuple(sorted(set(_paths(folder)) - before))
    return Trial(
        os.waitstatus_to_exitcode(ended), number, time.monotonic() - begin, usage.ru_maxrss << 10,
        texts[0], texts[1], left,
    )  # fmt: skip


def run_here(folder: Path, arguments: Sequence[str]) -> tuple[int, str]:
    """Run a command in this process, which then has imported what it needs; its exit status and stderr."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    streams, command, current = (sys.stdout, sys.stderr), sys.argv, os.getcwd()
    sys.argv = ["earlybird", *arguments]
    os.chdir(folder)
    try:
        with open(os.devnull, "w", encoding="utf-8") as sys.stdout:
            sys.stderr = errors = io.StringIO()
            main.run()
    except SystemExit as ended:
        return int(ended.code or 0), errors.getvalue()
    finally:
        os.chdir(current)
        (sys.stdout, sys.stderr), sys.argv = streams, command
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return 0, errors.getvalue()


def _child(folder: Path, arguments: Sequence[str], out: int, err: int) -> None:
    os.setsid()  # nobody's terminal, and a group of its own
    empty = os.open(os.devnull, os.O_RDONLY)
    for descriptor, number in ((empty, 0), (out, 1), (err, 2)):
        os.dup2(descriptor, number)
    os.chdir(folder)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["earlybird", *arguments]
    # With this variable an internal error is raised.
    os.environ["EARLYBIRD_DEBUG"] = "1"
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (addresses + _MAX_ADDRESSES, unlimited[1]))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_OUTPUT_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    status = _INTERNAL_ERROR
    try:
        main.run()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
        traceback.print_exc()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _paths(folder: Path) -> list[str]:
    return [
        os.path.join(above, name) for above, folders, names in os.walk(folder) for name in (*folders, *names)
    ]


def judge(trial: Trial, arguments: Sequence[str], base_bytes: int) -> list[str]:
    """What is wrong with what the command did; nothing if it accepted or refused the input as it should."""
    stderr = trial.stderr.decode(errors="replace")
    if trial.signal:
        name = signal.Signals(trial.signal).name
        is_late = trial.signal in (signal.SIGKILL, signal.SIGXCPU)
        return [f"{'hang' if is_late else 'signal'} ({name} after {trial.seconds:.0f} s)"]
    wrong = []
    if trial.peak_bytes - base_bytes > MAX_BYTES:
        wrong.append(f"memory: {trial.peak_bytes - base_bytes >> 20} MiB")
    if trial.status == _INTERNAL_ERROR:
        return [*wrong, f"internal error: {_where(stderr)}"]
    if "internal error" in stderr:
        return [*wrong, "internal error, without where"]
    wrong += {
        f"Python's warning {match[2]}: {match[3]} ({_short(match[1])})": 0
        for match in _WARNING.finditer(stderr)
    }
    wrong += _wrong_status(trial, arguments, stderr)
    wrong += _wrong_text("stderr", stderr)
    try:
        stdout = trial.stdout.decode()
    except UnicodeDecodeError:
        return [*wrong, "stdout is not UTF-8"]
    wrong += _wrong_text("stdout", stdout)
    if trial.status == 0 or (trial.status == 1 and not _SENTENCE.search(stderr)):
        wrong += _wrong_values(stdout, arguments)
        for path in map(Path, trial.left):
            wrong += _wrong_file(path)
    return wrong


def _where(stderr: str) -> str:
    """The last place of a traceback in earlybird, and the error."""
    places = re.findall(r'File "[^"]*/src/(earlybird/[^"]+)", line (\d+), in (\S+)', stderr)
    last = next(
        (
            line
            for line in reversed(stderr.splitlines())
            if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)
        ),
        "",
    )
    place = "{0[0]}:{0[1]} ({0[2]})".format(places[-1]) if places else "?"
    return f"{place}: {last[:120]}"


def _short(path: str) -> str:
    return path.rpartition("/src/")[2] or path


def _wrong_status(trial: Trial, arguments: Sequence[str], stderr: str) -> list[str]:
    is_verdict = arguments[0] in _VERDICTS or "--against" in arguments
    allowed = (0, 1, 2, FAILED_VERDICT) if is_verdict else (0, 2)
    # A sample may say that it received wrong data: that is no fault of the file.
    if trial.status == 1 and "received wrong data" in stderr:
        return []
    if trial.status not in allowed:
        return [f"status {trial.status}: {stderr.strip().splitlines()[-1:]}"]
    refused = trial.status == 2
    sentences = [line for line in stderr.splitlines() if line.startswith("earlybird: ")]
    if refused and (len(sentences) != 1 or not stderr.rstrip().splitlines()[-1].startswith("earlybird: ")):
        return [f"{len(sentences)} sentences of a refusal, or lines after it"]
    if refused and trial.left:
        return [f"left {os.path.basename(trial.left[0])[:40]} after a refusal"]
    return []


def _wrong_text(where: str, text: str) -> list[str]:
    match = _CONTROL.search(text)
    return [f"the character U+{ord(match[0]):04X} on {where}"] if match else []


def _wrong_values(stdout: str, arguments: Sequence[str]) -> list[str]:
    if "--json" in arguments:
        return _wrong_json(stdout, "stdout")
    if "csv" in arguments:
        cells = {cell.strip().lower() for cell in re.split('[,"\n]', stdout)}
        wrong = cells & {"nan", "inf", "-inf", "infinity", "none"}
        return [f"{wrong.pop()} in a CSV"] if wrong else []
    return []


def _wrong_file(path: Path) -> list[str]:
    if path.name.startswith(".") and path.exists():
        return [f"left the temporary file {path.name[:40]}"]
    if not path.is_file() or path.stat().st_size > _MAX_OUTPUT_BYTES:
        return []
    if path.suffix == ".json":
        return _wrong_json(path.read_text(), f"a file *{path.suffix}")
    if path.suffix == ".ndjson":
        found = (_wrong_json(line, "a line of *.ndjson") for line in path.read_text().splitlines())
        return next(filter(None, found), [])
    if path.suffix == ".html":
        return _wrong_text("the page", path.read_text())
    if path.suffix == ".xml":
        try:
            ElementTree.fromstring(path.read_text())
        except ElementTree.ParseError as error:
            return [f"no XML in a file: {error}"]
    return []


def _wrong_json(text: str, where: str) -> list[str]:
    def refuse(name: str) -> None:
        raise ValueError(f"{name} in JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        return [f"no JSON on {where}: {str(error)[:60]}"]
    wrong = _out_of_range(value, "")
    return [f"accepted out of range: {wrong}"] if wrong else []


def _may_be_negative(key: str) -> bool:
    """Whether a word of the key says so, or it is a name in an error: `slowest_error.fair`."""
    *above, name = key.split(".")
    return not _SIGNED.isdisjoint(name.split("_")) or (above or [""])[-1].endswith("error")


def _out_of_range(value: Any, key: str) -> str:
    """The first number of a JSON value that cannot be right, with its key; "" without one."""
    if isinstance(value, dict):
        # A name of other characters was made by a mutation: what its values mean is not known.
        names = ((f"{key}.{name}", item) for name, item in value.items() if name.isascii())
        return next(filter(None, (_out_of_range(item, name) for name, item in names)), "")
    if isinstance(value, list):
        return next(filter(None, (_out_of_range(item, key) for item in value)), "")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    is_wrong = (
        not math.isfinite(value)
        or abs(value) > (MAX_S if key.endswith("_s") and not key.endswith("per_s") else _MAX)
        or (value < 0 and not _may_be_negative(key))
        or (key.rpartition(".")[2] in _RANKS and value >= 1 << 31)
    )
    return f"{key[-40:]} is {value:.3g}" if is_wrong else ""
