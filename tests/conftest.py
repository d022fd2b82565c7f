"""What all tests share: the command as a user types it, and which MPIs are built here."""

import contextlib
import fcntl
import gc
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

# Set before numpy is imported, here and in the processes that tests start: next to other tests the spinning
# threads of OpenBLAS slow the fits of small matrices down threefold.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No test reads or writes what libearlybird keeps for this user; those of the cache have folders of their own.
os.environ["EARLYBIRD_CACHE"] = "off"

from earlybird.data.errors import EarlybirdError
from earlybird.machine.flavours import WHEELS, find_flavour
from earlybird.machine.home import home
from earlybird.toolchain.build import is_built, native_prefix, own_prefix
from tests import left_files, selection
from tests import slurm as real_slurm

# Without bytecode, each of the hundreds of processes that tests start would compile all modules again, which
# is a third of the time that `earlybird` needs to start, and pytest all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

EARLYBIRD = Path(sys.executable).parent / "earlybird"

# No test cuts the power, and thousands of files would wait for a disk.
os.fsync = lambda descriptor: None

# Ten thousand tests are collected, and all of them stay: looking for garbage among them takes a third of that
# time, and again and again while tests run.
gc.disable()

# What a shell starts in the background ignores Ctrl-C, and so would what tests start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# What runs under nohup ignores the end of a terminal, and so would what tests start and end so.
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _usable(name: str) -> bool:
    try:
        return is_built(find_flavour(name))
    except EarlybirdError:
        return False


BUILT = [name for name in WHEELS if _usable(name)]


_left_out: Counter[str] = Counter()
_begun_s = time.time()


def pytest_addoption(parser):
    parser.addoption(
        "--already-passed",
        metavar="FILE",
        help="leave out the tests that FILE lists: .pytest_cache/v/earlybird/passed of an earlier session",
    )
    parser.addoption(
        "--every-mpi",
        action="store_true",
        help="run the tests marked one_mpi with every MPI that is built, not with the first alone",
    )


def pytest_report_header():
    others = [selection.not_built(name) for name in WHEELS if name not in BUILT]
    return "; ".join([f"MPI flavours under test: {', '.join(BUILT) or 'none'}", *others])


def pytest_collection_modifyitems(config, items):
    passed = selection.read_passed(config.getoption("--already-passed"))
    every_mpi = config.getoption("--every-mpi")
    items[:], left_out, causes = selection.split(items, BUILT, passed, every_mpi)
    _left_out.update(causes)
    for item in items if not config.getoption("usepdb") else ():
        if item.get_closest_marker(selection.MEASURES_TIME):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun="^AssertionError"))
    if left_out:
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    gc.enable()
    gc.freeze()


def pytest_sessionfinish(session, exitstatus):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(_left_out)
    elif getattr(session.config, "cache", None):
        session.config.cache.set(selection.STATUS_KEY, int(exitstatus))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadfile`, units of `selection.unit_of`."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return selection.unit_of(nodeid)

    return Scheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Each worker of `pytest -n` collects all tests, so one of them says what all leave out."""
    if not _left_out:
        _left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter, config):
    """The tests that did not run, by cause, those that ran a second time, what ranks that tests have killed
    left, and the files in which most of the time of a session goes."""
    stats = terminalreporter.stats
    left = left_files.remove_left(_begun_s)  # by now no worker runs tests
    if getattr(config, "cache", None):
        config.cache.set(selection.CACHE_KEY, selection.passed_ids(stats))
    causes = selection.skip_causes(stats) + _left_out
    if causes:
        terminalreporter.section(f"{causes.total()} tests not run")
        for line in selection.cause_lines(causes):
            terminalreporter.write_line(line)
    second_runs = selection.second_run_lines(stats)
    if second_runs:
        terminalreporter.section(f"{len(second_runs)} tests that measure time run a second time")
        for line in second_runs:
            terminalreporter.write_line(line)
    if left:
        terminalreporter.section(f"{len(left)} files that jobs left in /dev/shm are removed")
        terminalreporter.write_line(", ".join(left))
    seconds = Counter()
    for report in (one for reports in stats.values() for one in reports):
        if isinstance(report, pytest.TestReport):
            seconds[report.location[0]] += report.duration
    if len(seconds) > 10:
        terminalreporter.section(f"{sum(seconds.values()):.0f} s of tests, the longest files")
        for name, file_s in seconds.most_common(10):
            terminalreporter.write_line(f"{file_s:6.1f} s  {name}")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before the time limit of the test begins
def pytest_runtest_protocol(item):
    """While a test marked `alone` runs, a second time, too, the other workers wait."""
    with _turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextlib.contextmanager
def _turn(alone: bool) -> Iterator[None]:
    folder = home() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "tests", "w") as running, open(folder / "tests-next", "w") as next_one:
        # Who waits to be alone keeps back whoever comes later, and so is not kept waiting for ever.
        fcntl.flock(next_one, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(next_one, fcntl.LOCK_UN)
        yield


def require_mpi(name: str) -> None:
    """Skip the test where this MPI flavour is not built."""
    if name not in BUILT:
        pytest.skip(selection.not_built(name))


@pytest.fixture(params=BUILT or list(WHEELS))
def mpi(request) -> str:
    """The name of each MPI flavour in turn that is built. Those of others are not even collected, which would
    take seconds of each worker; without any, tests say which are missing."""
    require_mpi(request.param)
    return request.param


@pytest.fixture(autouse=True)
def handlers_of_signals() -> Iterator[None]:
    """A command that runs in this process changes them for good."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def any_mpi() -> str:
    """One MPI that is built."""
    if not BUILT:
        pytest.skip(f"no MPI is built (make setup MPI={next(iter(WHEELS))})")
    return BUILT[0]


@pytest.fixture
def own_home(any_mpi, tmp_path, monkeypatch) -> Path:
    """A data folder with that MPI and its native build, in which everything else that commands keep ends
    with the test."""
    folder, build = tmp_path / "home", native_prefix(find_flavour(any_mpi))
    (folder / "native").mkdir(parents=True)
    (folder / "mpi").symlink_to(home() / "mpi")
    monkeypatch.setenv("EARLYBIRD_HOME", str(folder))
    own_prefix(find_flavour(any_mpi)).symlink_to(build)
    return folder


@pytest.fixture
def nothing_installed(monkeypatch) -> None:
    """Only EARLYBIRD_HOME counts: what is built in this environment is not looked up."""
    monkeypatch.setattr("earlybird.machine.home.installation_homes", list)


@pytest.fixture
def earlybird(own_process):
    """Run `earlybird WORDS...` in a folder of its own and return the finished process."""
    return own_process


@pytest.fixture
def own_process(tmp_path):
    """What `earlybird` is, unless a file or folder takes `in_process` for it."""

    def run(*arguments: str, check: bool = True, timeout: float = 300, **more) -> subprocess.CompletedProcess:
        result = subprocess.run(
            [EARLYBIRD, *map(str, arguments)],
            cwd=more.pop("cwd", tmp_path),
            env=dict(os.environ) | more.pop("env", {}),
            capture_output=True,
            text=True,
            timeout=timeout,
            **more,
        )
        if check:
            assert result.returncode == 0, result.stdout + result.stderr
        return result

    return run


@pytest.fixture
def in_process(tmp_path, monkeypatch, capsys):
    """As `earlybird`, but in this process: no interpreter has to start and to import everything again.

    For what an option means, what is printed and what is refused. Signals, limits, and what a command leaves
    in the process need `earlybird`.
    """
    from earlybird.cli import main

    def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.argv", ["earlybird", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main.run()
        result = subprocess.CompletedProcess(sys.argv, end.value.code or 0, *capsys.readouterr())
        if check:
            assert result.returncode == 0, result.stdout + result.stderr
        return result

    return run


def assert_refused(result: subprocess.CompletedProcess, *texts: str, status: int = 2) -> None:
    """One sentence on stderr with `texts` in it, nothing on stdout, no traceback, the exit status."""
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    sentence = [line for line in result.stderr.splitlines() if line.startswith("earlybird: ")]
    assert len(sentence) == 1, result.stderr
    for text in texts:
        assert text in sentence[0], sentence[0]


@pytest.fixture
def refused():
    return assert_refused


@pytest.fixture(scope="module")
def slurm():
    """A real Slurm of two nodes, n1 and n2, that have other names themselves."""
    try:
        started, process = real_slurm.start(domain=real_slurm.DOMAIN)
    except real_slurm.Unavailable as error:
        pytest.skip(str(error))
    yield started
    real_slurm.stop(started, process)
