"""Commands work with standard streams that are closed, full or without a reader, or that take ASCII only."""

import json
import os
import signal
import subprocess

import pytest

from tests.conftest import EARLYBIRD
from tests.e2e.test_recorded import RECORDED

PROFILE = RECORDED / "mpich" / "profile.json"
RUN = RECORDED / "mpich" / "run"
CLOSED = ("2>&-", ">&-", "<&-", "<&- >&- 2>&-")
STREAMS = 'for k in 0 1 2; do [ -e /proc/$$/fd/$k ] && printf "$k " >> streams; done; echo out; echo err >&2'


@pytest.fixture
def redirected(tmp_path):
    """redirected(redirection, *arguments) runs `earlybird` with that redirection of a shell."""

    def run(redirection, *arguments, **environment):
        return subprocess.run(
            ["sh", "-c", f'exec "$@" {redirection}', "sh", EARLYBIRD, *map(str, arguments)],
            cwd=tmp_path, capture_output=True, env=dict(os.environ) | environment, timeout=120,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("closed", CLOSED)
def test_a_file_is_written_and_nothing_else_gets_into_what_is_printed(redirected, tmp_path, closed):
    result = redirected(closed, "export", RUN, "--to", "openmetrics", "-o", "run.prom", "--json")
    # The file is whole, and what was to be printed is not.
    assert result.returncode == (1 if ">&-" in closed.replace("2>&-", "") else 0), result.stderr
    assert (tmp_path / "run.prom").read_text().endswith("# EOF\n")
    if closed in ("2>&-", "<&-"):
        assert json.loads(result.stdout)["file"] == "run.prom"
    else:
        assert not result.stdout


@pytest.mark.parametrize("closed", CLOSED)
def test_a_command_that_exec_starts_has_all_streams(redirected, tmp_path, any_mpi, closed):
    result = redirected(closed, "exec", "--mpi", any_mpi, "--", "sh", "-c", f"{STREAMS}; exit 7")
    assert result.returncode == 7
    assert (tmp_path / "streams").read_text() == "0 1 2 "
    assert result.stderr == (b"" if "2>" in closed else b"err\n")


def test_a_program_is_recorded_and_its_status_passed_on(redirected, tmp_path, any_mpi):
    result = redirected(
        CLOSED[-1], "record", "-o", "rec", "--mpi", any_mpi, "--", "sh", "-c", f"{STREAMS}; exit 7"
    )
    assert (result.returncode, result.stdout, result.stderr) == (7, b"", b"")
    assert (tmp_path / "streams").read_text() == "0 1 2 "


def test_ranks_are_measured_with_closed_streams(redirected, tmp_path, any_mpi):
    options = ("--sizes", "8", "--launches", "1", "--quick", "--mpi", any_mpi)
    result = redirected("<&- 2>&-", "measure", "pingpong", *options, "-o", "run", "--json")
    assert result.returncode == 0
    points = json.loads(result.stdout)["points"]
    assert points and all(point["size_bytes"] == 8 for point in points)


@pytest.mark.parametrize("command, status", [(("show", PROFILE), 1), (("compare", RUN, RUN), 3)])
def test_a_full_stdout_ends_with_one_sentence(redirected, command, status):
    result = redirected("> /dev/full", *command)
    assert result.returncode == status
    (sentence,) = [line for line in result.stderr.decode().splitlines() if line.startswith("earlybird: ")]
    assert "no space left on device" in sentence


def test_a_full_stderr_ends_nothing(redirected):
    result = redirected("2> /dev/full", "fit", RUN, "-o", "profile.json", "--json")
    assert result.returncode == 0 and json.loads(result.stdout)
    assert redirected("2> /dev/full", "show", "nothing").returncode == 2


def test_a_reader_that_ends_is_no_error(tmp_path):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "wb") as pipe:
        result = subprocess.run(
            [EARLYBIRD, "show", RUN], stdout=pipe, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL),
        )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, b"")


def test_ascii_streams_get_escapes(redirected, tmp_path):
    profile = json.loads(PROFILE.read_text())
    profile["id"] = "mögliche \x1b[31m\udcff"
    (tmp_path / "ä.json").write_text(json.dumps(profile))
    for command in (
        ("show", "ä.json"),
        ("show", "ö.json"),
        ("show", b"\xff.json".decode(errors="surrogateescape")),
    ):
        result = redirected("", *command, LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
        assert result.returncode in (0, 2), result.stderr
        assert (result.stdout + result.stderr).isascii()
