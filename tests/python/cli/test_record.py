"""What `earlybird record` prints where it cannot write beside the files of the ranks."""

import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from earlybird.data import labels
from earlybird.data.errors import InputError, WorkError
from earlybird.data.recording import load_recording
from earlybird.launch import recorded_command
from earlybird.present.contents import contents
from earlybird.present.material import collect
from earlybird.present.render.data import Format
from earlybird.present.subjects.recording.terminal import print_recording
from tests import recordings


@pytest.mark.parametrize(
    "error",
    [WorkError("cannot write it: No space left; free some"), InputError("cannot write it: denied; choose")],
)
def test_functions_that_cannot_be_written_leave_the_recording_readable(
    in_process, monkeypatch, tmp_path, error
):
    def refuse(*_):
        raise error

    folder = recordings.on_disk(tmp_path / "my rec", 4, recordings.ring(4))
    monkeypatch.setattr(
        recorded_command, "function_names", lambda module, places: dict.fromkeys(places, "main")
    )
    monkeypatch.setattr(recorded_command, "save_functions", refuse)
    result = in_process("record", "--merge", folder)
    assert result.returncode == 0 and "4 of 4 ranks" in result.stdout
    warning, following = result.stderr.splitlines()
    assert following == f"next: earlybird report '{folder}' -o report.html"
    assert warning.startswith(f"warning: functions are not named: {str(error).partition(';')[0]}; ")
    assert warning.endswith(f"`earlybird record --merge '{folder}'`")


def test_waits_are_shown_or_said_to_be_none(in_process, tmp_path):
    folder = recordings.on_disk(tmp_path / "rec", 4, recordings.ring(4))
    recordings.add_traces(folder, 4)
    shown = in_process("show", folder).stdout
    assert "for a late sender" in shown and "No call waits" not in shown
    alone = recordings.on_disk(tmp_path / "alone", 1, [])
    recordings.add_traces(alone, 1)
    assert "No call waits for another rank" in in_process("show", alone).stdout


def test_show_prints_the_sentences_and_tables_of_the_report(in_process, tmp_path):
    folder = recordings.on_disk(tmp_path / "rec", 4, recordings.ring(4), lambda rank: 0.2 + 0.1 * rank)
    recordings.add_traces(folder, 4)
    shown = in_process("show", folder).stdout
    chapter = contents(collect([folder])).chapters["recording"]
    lines = shown.splitlines()
    assert all(line in chapter.sentence for line in lines if line.endswith(".") and "Messages" not in line)
    assert chapter.sentence.split(".")[0] in shown and len(chapter.brief) == 4
    cells = [line.split() for line in lines]
    for table in chapter.brief:
        assert all(" ".join(row).split() in cells for row in [table.header, *table.rows])


@pytest.mark.parametrize(
    ("tag", "size", "said"),
    [
        (9, 1000, "their sends are not in the traces"),
        (5, 900, "the sends of their pair and tag have other sizes"),
    ],
)
def test_it_is_said_why_a_receive_has_no_send(capsys, tmp_path, tag, size, said):
    folder = recordings.on_disk(tmp_path / "rec", 2, recordings.ring(2))
    sent = (1.0, 1.1, recordings.ISEND, recordings.SENT, 1, 1, tag, 1, size)
    received = (1.0, 1.2, recordings.IRECV, recordings.RECEIVED, 1, 0, 5, 1, 1000)
    for rank, row in enumerate((sent, received)):
        (folder / f"rank-{rank}.trace").write_bytes(recordings.trace_file([row], 10))
    world = replace(recordings.world(0, 2), identity=1)
    loaded = load_recording(folder)
    ranks = {rank: replace(one, communicators={1: world}) for rank, one in loaded.ranks.items()}
    print_recording(replace(loaded, ranks=ranks), Format.table)
    assert f"1 of 1 receives have no known send: {said}" in capsys.readouterr().out


def test_traces_that_end_before_the_run_are_not_presented_as_whole(in_process, tmp_path):
    folder = recordings.on_disk(tmp_path / "rec", 4, recordings.ring(4))
    recordings.add_traces(folder, 4)
    waits = json.loads(in_process("show", "--json", folder).stdout)["waits"]
    assert waits["is_whole"] and waits["cut_ranks"] == [] and waits["cut"] == ""
    for rank in (1, 2):
        recordings.cut_trace(folder / f"rank-{rank}.trace")
    said = (
        "the traces of ranks 1, 2 end 2.31 s after MPI_Init at the earliest, as on a full disk; waits after"
    )
    shown = in_process("show", folder).stdout
    assert labels.capital(said) in shown and "Waits are those of the last" not in shown
    waits = json.loads(in_process("show", "--json", folder).stdout)["waits"]
    assert not waits["is_whole"] and waits["reaches_back"]
    assert [one["rank"] for one in waits["cut_ranks"]] == [1, 2] and waits["cut"].startswith(said)
    reported = " ".join(in_process("report", "--terminal", folder).stdout.split())
    assert said.removeprefix("the") in reported


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--events", "some"], "--events is 'some'; give how many"),
        (["--events", "-1"], "--events is '-1'"),
        (["--events", "1000000000"], "at most 100000000, or all"),
        (["--events", "10", "--events-size", "1GiB"], "--events-size is of `--events all`"),
        (["--events", "all", "--events-size", "1KiB"], "give at least 1MiB"),
        (["--events", "all", "--events-size", "much"], "--events-size"),
    ],
)
def test_what_events_may_not_be_is_refused_in_a_sentence(in_process, tmp_path, options, said):
    result = in_process("record", "-o", tmp_path / "rec", *options, "--", "true", check=False)
    assert result.returncode == 2 and said in result.stderr
    assert not (tmp_path / "rec").exists()


def test_ranks_that_hung_are_named_with_their_call(in_process, tmp_path):
    folder = recordings.on_disk(tmp_path / "rec", 2, [])
    recordings.add_traces(folder, 2, late=0, steps=1)
    hung = recordings.rank_file(1, 2, recordings.entries(1, [], 0.0), end=None)
    (folder / "rank-1.ebr").write_bytes(hung)
    (folder / "rank-1.open").write_bytes(recordings.open_call_file((2.5, recordings.WAITALL, 0, 0, 7)))
    result = in_process("show", folder)
    assert "rank 1 had not returned from MPI_Waitall" in result.stderr
    assert "No call waits for another rank" not in result.stdout
    alone = recordings.on_disk(tmp_path / "alone", 1, [])
    recordings.add_traces(alone, 1)
    (alone / "rank-0.ebr").write_bytes(recordings.rank_file(0, 1, recordings.entries(0, [], 0.0), end=None))
    (alone / "rank-0.open").write_bytes(recordings.open_call_file((2.5, recordings.WAITALL, 0, 0, 7)))
    assert "No call that has returned waits for another rank" in in_process("show", alone).stdout


# Runs a command as `record` does, with much patience, and prints its status.
RUN = (
    "import os, sys; from earlybird.launch import process;"
    "from earlybird.launch.recorded_command import run_recorded;"
    "process._GRACE_S = 1000; print(run_recorded('/bin/sh', ['sh', *sys.argv[1:]], dict(os.environ), False))"
)


def test_the_shared_memory_of_a_command_that_a_signal_ends_is_removed():
    """Also what ranks hold that outlive their launcher for a moment."""
    name = f"mpich_shm_{uuid.uuid4().hex}"
    rank = (
        f"import mmap, os, time; file = open('/dev/shm/{name}', 'w+b'); file.truncate(4096);"
        "launcher = os.getppid(); held = mmap.mmap(file.fileno(), 4096); print('holds', flush=True)\n"
        "while os.getppid() == launcher: time.sleep(0.01)\n"
        "time.sleep(0.1)"
    )
    script = '"$0" -c "$1" & exec sleep 100'
    command = [sys.executable, "-c", RUN, "-c", script, sys.executable, rank]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "holds\n"
        process.send_signal(signal.SIGHUP)
        printed, _ = process.communicate(timeout=60)
    assert printed == f"{128 + signal.SIGHUP}\n"
    assert not Path("/dev/shm", name).exists()


def test_what_another_job_makes_while_a_command_fails_stays(tmp_path):
    """UCX's segments have the same names in all jobs, and are not mapped from their first moment on."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    segment, session = tmp_path / f"ucx_shm_posix_{uuid.uuid4().hex}", tmp_path / f"ompi.{ended.pid}"
    # Jobs of other tests end meanwhile, and look in the folders of the machine.
    instead = (
        "from pathlib import Path; from earlybird.launch import process;"
        f"here = Path({str(tmp_path)!r}); process.MACHINE = process.Places(here, here)"
    )
    command = [sys.executable, "-c", f"{instead}\n{RUN}", "-c", "echo begun; read line; exit 3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        try:
            segment.touch()
            session.mkdir()
            assert process.communicate("go on\n", timeout=60)[0] == "3\n"
            assert segment.exists() and session.exists()
        finally:
            segment.unlink(missing_ok=True)
            session.rmdir()


def test_a_daemon_that_a_failed_command_leaves_is_not_awaited():
    """Nor does whoever recorded stay the parent of what it starts later."""
    adopts = "import ctypes; flag = ctypes.c_int(9); ctypes.CDLL(None).prctl(37, ctypes.byref(flag))"
    command = [sys.executable, "-c", f"{RUN}; {adopts}; print(flag.value)"]
    command += ["-c", "sleep 100 > /dev/null 2>&1 & echo $!; exit 4"]
    daemon, *printed = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.split()
    os.kill(int(daemon), signal.SIGKILL)
    assert printed == ["4", "0"]
