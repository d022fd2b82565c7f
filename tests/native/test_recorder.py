"""The recorder counts every message of programs whose messages are known, on every MPI."""

import contextlib
import os
import pty
import random
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from earlybird.data.phases import find_phases
from earlybird.data.recording import load_recording
from earlybird.machine.flavours import find_flavour
from earlybird.patterns.recorded_epochs import exchange_of_phase
from earlybird.record.measured_phase import MeasuredPhase
from earlybird.toolchain.build import RECORDER, library_path
from tests.conftest import EARLYBIRD, require_mpi
from tests.recorded_traffic import RANKS, expected, pairs_of, phases_of

pytestmark = pytest.mark.mpi

# How often each style of tests/native/programs/record_traffic.c exchanges the messages.
STYLES = {
    "isend": 1, "issend": 1, "send": 1, "ssend": 1, "rsend": 1, "sendrecv": 1, "sendrecv_replace": 1,
    "persistent": 6, "completion": 6, "wildcard": 1, "derived": 1, "split": 3, "inter": 1,
}  # fmt: skip
LARGE_COUNTS = ("mpich", "intel")
# Each pair has one block per call, and there are two calls.
BLOCKS = ("alltoallv", "alltoallw", "neighbours")


def is_possible(style, src, dst):
    """Ranks of one parity share a communicator in `split`; in `inter` each parity is one of the groups."""
    return {"split": src % 2 == dst % 2, "inter": src % 2 != dst % 2}.get(style, True)


def messages_of(style, smallest=0):
    """60 messages between random ranks, of no byte up to some that no MPI sends eagerly."""
    chosen = random.Random(style)
    pairs = [(s, d) for s in range(RANKS) for d in range(RANKS) if is_possible(style, s, d)]
    limits = (0, 1, 50, 3000, 60000)
    return [
        (*chosen.choice(pairs), smallest + 4 * chosen.randint(0, chosen.choice(limits))) for _ in range(60)
    ]


def test_every_message_is_counted_by_sender_and_receiver(mpi, record):
    times = STYLES | ({"large": 1} if mpi in LARGE_COUNTS else {})
    styles = {style: messages_of(style) for style in times}
    _, recording = record(mpi, styles)
    wanted = {style: expected(messages, times[style]) for style, messages in styles.items()}
    phases = phases_of(recording, styles)
    assert {style: pairs_of(recording.sent(of)) for style, of in phases.items()} == wanted
    assert {style: pairs_of(recording.received(of)) for style, of in phases.items()} == wanted
    assert (recording.missing, recording.ended_early) == ([], [])
    names = {total.name for total in recording.call_totals()}
    assert names >= {"MPI_Send", "MPI_Irecv"}
    assert not any(name.endswith("_c") for name in names)
    for rank, one in recording.ranks.items():
        members = [tuple(communicator.members) for communicator in one.communicators.values()]
        # Three with the same members one after another are one.
        assert members.count((2, 0) if rank % 2 == 0 else (3, 1)) == 1


def test_messages_of_threads_are_counted(mpi, record):
    messages = messages_of("threads")
    _, recording = record(mpi, {"threads": messages})
    assert pairs_of(recording.sent()) == pairs_of(recording.received()) == expected(messages, 2)


def test_messages_and_bytes_of_collectives_are_counted(mpi, record):
    styles = {style: messages_of(style) for style in BLOCKS} | {"cart": [(0, 1, 24)], "collectives": []}
    _, recording = record(mpi, styles)
    phases, wanted = phases_of(recording, styles), {"collectives": {}}
    for style in BLOCKS:
        blocks = Counter()
        for src, dst, size in styles[style]:
            blocks[src, dst] += size
        wanted[style] = {pair: (2, 2 * size) for pair, size in blocks.items() if size > 0}
    # Neighbours on a line exchange with no one beyond its ends.
    wanted["cart"] = {
        (src, dst): (2, 48) for src in range(RANKS) for dst in (src - 1, src + 1) if 0 <= dst < RANKS
    }
    assert {style: pairs_of(recording.sent(of)) for style, of in phases.items()} == wanted
    assert {style: pairs_of(recording.received(of)) for style, of in phases.items()} == wanted
    (line,) = (one for one in recording.ranks[1].communicators.values() if one.topology == "cart")
    assert (line.dims, line.periods, line.sources) == ((RANKS,), (0,), (0, 2))
    # Bytes of the other collectives are those that each rank passes in.
    totals = {total.name: (total.calls, total.bytes) for total in recording.call_totals()}
    assert totals["MPI_Bcast"] == (4, 4 * 400)
    assert totals["MPI_Allreduce"] == (4, 4 * 80)
    assert totals["MPI_Alltoall"] == (4, 4 * 4 * 8)
    # The root's part is the whole buffer: 1 + 2 + 3 + 4, and 4 * 5.
    assert totals["MPI_Gatherv"] == (4, 10 + 2 + 3 + 4)
    assert totals["MPI_Scatter"] == (4, 20 + 3 * 5)
    assert totals["MPI_Reduce_scatter"] == (4, 4 * 10)


def test_sent_half_of_isendrecv_is_exact(mpi, record):
    messages = messages_of("isendrecv")
    _, recording = record(mpi, {"isendrecv": messages})
    wanted = expected(messages, 1)
    assert pairs_of(recording.sent()) == wanted
    received = pairs_of(recording.received())
    assert {pair: counts[0] for pair, counts in received.items()} == {p: c[0] for p, c in wanted.items()}
    if mpi == "openmpi":  # the statuses of others are not filled in
        assert received == wanted


def test_partitioned_transfers_above_libearlybird_are_one_message_per_start(mpi, record):
    """What libearlybird sends for them is not the program's."""
    messages = [one for one in messages_of("partitioned", smallest=4) if one[0] != one[1]]
    result, recording = record(mpi, {"partitioned": messages}, "--interpose")
    assert "precedes libearlybird" not in result.stderr
    assert pairs_of(recording.sent()) == pairs_of(recording.received()) == expected(messages, 3)
    names = {total.name for total in recording.call_totals()}
    assert {"MPI_Psend_init", "MPI_Startall", "MPI_Pready"} <= names
    assert not {"MPI_Isend", "MPI_Send", "MPI_Irecv"} & names


@pytest.mark.thorough
def test_partitioned_transfers_of_the_mpi_itself_are_recorded(record):
    require_mpi("mpich")  # Open MPI 5.0.11's own transfers hang with this program
    messages = messages_of("partitioned", smallest=4)
    _, recording = record("mpich", {"partitioned": messages})
    assert pairs_of(recording.sent()) == pairs_of(recording.received()) == expected(messages, 3)


def test_a_killed_rank_leaves_what_it_had_recorded(any_mpi, record, tmp_path):
    import threading

    killed = []

    def kill():
        for _ in range(600):
            time.sleep(0.1)
            with_data = [
                path for path in (tmp_path / "rec").glob("rank-2.ebr") if path.stat().st_size > 20000
            ]
            if not with_data:
                continue
            for process in os.listdir("/proc"):
                if process.isdigit() and is_rank(process, 2, str(tmp_path / "rec")):
                    os.kill(int(process), signal.SIGKILL)
                    killed.append(process)
            return

    killer = threading.Thread(target=kill)
    killer.start()
    messages = [(src, dst, 100) for src in range(RANKS) for dst in range(RANKS)]
    result, recording = record(any_mpi, {"forever": messages}, check=False)
    killer.join()
    assert killed
    assert result.returncode != 0
    assert 2 in recording.ended_early
    assert "killed" in result.stderr
    assert recording.ranks[2].end is None
    counted = pairs_of(recording.sent())
    assert set(counted) == {(src, dst) for src, dst, _ in messages}
    assert all(size == 100 * messages for messages, size in counted.values())


def test_a_signal_to_the_recorder_alone_ends_the_program(any_mpi, compiled, tmp_path):
    """As a batch system or `kill` sends it; a terminal sends it to the program, too."""
    flavour = find_flavour(any_mpi)
    launch = ["mpiexec", "-n", "4", *(["--oversubscribe"] * (flavour.family == "openmpi"))]
    command = [*launch, compiled(flavour, "record_waits"), "100000"]
    process = subprocess.Popen(
        [EARLYBIRD, "record", "-o", "rec", "--mpi", any_mpi, "--", *map(str, command)],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    )  # fmt: skip
    try:
        for _ in range(600):
            if len([one for one in tmp_path.glob("rec/*.ebr") if one.stat().st_size]) == 4:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0 and "Traceback" not in err
    assert "4 of 4 ranks" in out and "killed, interrupted" in err


def test_an_interrupt_of_the_terminal_reaches_the_program_once(any_mpi, tmp_path):
    script = 'trap "echo got it" INT; echo ready; sleep 3; sleep 0.5'
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(
            EARLYBIRD, [str(EARLYBIRD), "record", "-o", "rec", "--mpi", any_mpi, "--", "sh", "-c", script]
        )
    printed, is_sent = b"", False
    with contextlib.suppress(OSError):  # at the end of the terminal
        while data := os.read(terminal, 1000):
            printed += data
            if b"ready" in printed and not is_sent:
                is_sent = os.write(terminal, b"\x03") == 1
    os.waitpid(pid, 0)
    os.close(terminal)
    assert printed.count(b"got it") == 1 and b"nothing was recorded" in printed


def is_rank(process, rank, folder):
    """Whether a process is that rank of the job that writes to the folder."""
    try:
        with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/environ", "rb") as environ:
            variables = environ.read().split(b"\0")
            names = (b"PMI_RANK", b"PMIX_RANK")
            return (
                f"EARLYBIRD_RECORD={folder}".encode() in variables
                and any(b"%s=%d" % (name, rank) in variables for name in names)
                and "record_traffic" in maps.read()
            )
    except OSError:
        return False


@pytest.mark.parametrize(
    ("style", "how", "said"), [("abort", "abort", "MPI_Abort"), ("exit", "exit", "exited")]
)
def test_a_program_that_ends_without_finalize_is_recorded(any_mpi, record, style, how, said):
    result, recording = record(any_mpi, {style: [(0, 1, 8)]}, check=False)
    assert result.returncode != 0
    assert how in {one.end for one in recording.ranks.values()}
    assert said in result.stderr


def test_a_node_is_called_what_the_batch_system_calls_it(any_mpi, own_process, compiled, tmp_path):
    """As srun starts ranks, without a launcher of the MPI."""
    flavour = find_flavour(any_mpi)
    (tmp_path / "isend.messages").write_text("0 0 8\n")
    program = compiled(flavour, "record_traffic", ["-pthread"])
    names = {"EARLYBIRD_NODE_NAME_IN": "SLURMD_NODENAME", "SLURMD_NODENAME": "n17"}
    command = (program, tmp_path, "isend", tmp_path / "isend.messages")
    own_process("record", "-o", "rec", "--mpi", any_mpi, "--", *command, env=names)
    (rank,) = load_recording(tmp_path / "rec").ranks.values()
    assert rank.host == "n17"


def test_a_command_without_mpi_is_run_and_nothing_is_left(any_mpi, own_process, tmp_path):
    result = own_process(
        "record", "-o", "rec", "--mpi", any_mpi, "--", "sh", "-c", "echo hello; exit 3", check=False
    )
    assert (result.returncode, result.stdout) == (3, "hello\n")
    assert "no rank wrote to rec" in result.stderr and "ended with status 3" in result.stderr
    assert not (tmp_path / "rec").exists()


def test_an_existing_folder_is_refused_before_the_command_runs(any_mpi, own_process, tmp_path, refused):
    (tmp_path / "rec").mkdir()
    refused(
        own_process("record", "-o", "rec", "--mpi", any_mpi, "--", "echo", check=False), "rec exists already"
    )


def test_the_summary_names_calls_and_pairs_and_becomes_a_pattern(any_mpi, record, in_process):
    messages = [(0, 1, 1000), (0, 1, 1001), (2, 3, 8), (1, 1, 5)]
    result, _ = record(any_mpi, {"isend": messages})
    assert "4 of 4 ranks" in result.stdout
    assert "MPI_Isend" in result.stdout
    shown = in_process("show", "rec").stdout
    assert shown in result.stdout
    in_process("pattern", "recording", "rec", "-o", "exchange.csv", "--all")
    in_process("pattern", "recording", "rec", "-o", "combined.csv", "--all", "--combined")
    folder = result.args and in_process("show", "exchange.csv", "--format", "csv").stdout
    assert sorted(folder.splitlines()[1:]) == ["0,1,1000", "0,1,1001", "2,3,8"]
    combined = in_process("show", "combined.csv", "--format", "csv").stdout
    assert sorted(combined.splitlines()[1:]) == ["0,1,2001", "2,3,8"]


def phases_by_calls(recording):
    return {(phase.region, *phase.calls): phase for phase in find_phases(recording)}


@pytest.mark.one_mpi
def test_a_program_is_split_into_the_phases_of_its_source(mpi, record_phases, tmp_path):
    """Ranks at the ends of the line make other calls than those between them: the phases are the same."""
    steps, sweeps = 7, 5
    recording = record_phases(mpi, steps, sweeps)
    phases = phases_by_calls(recording)
    stencil = ("MPI_Irecv", "MPI_Isend", "MPI_Waitall")
    expected_phases = {
        (1, "MPI_Alltoallv"): ("assemble", 1),
        (1, *stencil): ("exchange", steps),
        (2, *stencil): ("exchange", steps),
        (1, "MPI_Allreduce"): ("sum", steps),
        (1, "MPI_Recv", "MPI_Send"): ("sweep", sweeps),
        (1, "MPI_Barrier"): ("main", sweeps),
    }
    for calls, (function, epochs) in expected_phases.items():
        assert (phases[calls].functions, phases[calls].epochs) == ([function], epochs), calls
        assert sorted(phases[calls].of_ranks) == list(range(RANKS))
    line = [(src, dst) for src in range(RANKS) for dst in (src - 1, src + 1) if 0 <= dst < RANKS]
    every = [(src, dst, 1 + 10 * dst) for src in range(RANKS) for dst in range(RANKS) if src != dst]
    exchanges = {
        (1, "MPI_Alltoallv"): every,
        (1, *stencil): [(src, dst, 1000) for src, dst in line],
        (2, *stencil): [(src, dst, 2000) for src, dst in line],
        (1, "MPI_Recv", "MPI_Send"): [(src, src + 1, 100) for src in range(RANKS - 1)] * 3,
    }
    for calls, messages in exchanges.items():
        made = exchange_of_phase(recording, phases[calls])
        assert sorted(map(tuple, made.pattern.triples().tolist())) == sorted(messages), calls
        assert made.num_unequal == 0
    totals = recording.sent().by_pair()
    in_phases = sum(int(phase.sent(recording).messages.sum()) for phase in phases.values())
    assert in_phases == totals.messages.sum()


@pytest.mark.one_mpi
def test_a_pattern_is_one_epoch_of_the_heaviest_phase_or_of_the_chosen_one(mpi, record_phases, in_process):
    recording = record_phases(mpi, 3, 2)
    assert all(0 <= (one.core_wait_s or 0) <= one.run_s for one in recording.ranks.values())
    if Path("/proc/thread-self/schedstat").exists():  # which counts a time slice when it ends
        assert all(0 < one.ran_s <= one.run_s + 0.1 for one in recording.ranks.values())
    written = in_process("pattern", "recording", "rec", "-o", "heaviest.csv")
    assert "of which there were 3" in written.stderr
    shown = in_process("show", "heaviest.csv", "--format", "csv").stdout.splitlines()[1:]
    assert set(shown) == {f"{s},{d},2000" for s in range(RANKS) for d in range(RANKS) if abs(s - d) == 1}
    sweep = phases_by_calls(recording)[1, "MPI_Recv", "MPI_Send"]
    in_process("pattern", "recording", "rec", "-o", "sweep.csv", "--phase", sweep.number)
    shown = in_process("show", "sweep.csv", "--format", "csv").stdout.splitlines()[1:]
    assert shown == [f"{rank},{rank + 1},100" for rank in range(RANKS - 1) for _ in range(3)]


@pytest.fixture
def record_phases(own_process, compiled, tmp_path):
    """record_phases(mpi, steps, sweeps) runs the program with known phases."""

    def run(mpi, steps, sweeps):
        flavour = find_flavour(mpi)
        if not library_path(flavour).with_name(RECORDER).exists():
            pytest.skip(f"the recorder is not built for {mpi}")
        program = compiled(flavour, "record_phases", [])
        launch = ["mpiexec", "-n", RANKS, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
        own_process("record", "-o", "rec", "--mpi", mpi, "--", *launch, program, steps, sweeps, timeout=120)
        return load_recording(tmp_path / "rec")

    return run


@pytest.mark.parametrize("how", ["shared", "own"])
def test_threads_at_once_are_told_by_the_longest_and_by_their_communicators(
    mpi, own_process, compiled, tmp_path, how
):
    """A phase of several threads has the epochs of one, with the messages of all."""
    flavour, threads, windows = find_flavour(mpi), 3, 20
    if not library_path(flavour).with_name(RECORDER).exists():
        pytest.skip(f"the recorder is not built for {mpi}")
    program = compiled(flavour, "record_threads", ["-pthread"])
    launch = ["mpiexec", "-n", 2, *(["--oversubscribe"] * (flavour.family == "openmpi"))]
    own_process(
        "record", "-o", "rec", "--mpi", mpi, "--", *launch, program, how, threads, windows, timeout=120
    )
    recording = load_recording(tmp_path / "rec")
    phase = next(one for one in find_phases(recording) if "MPI_Irecv" in one.calls)
    assert set(phase.epochs_of.values()) == {windows}
    assert phase.sent(recording).messages.sum() == 2 * threads * windows * 32
    measured = MeasuredPhase(recording, phase)
    shared = measured.shared_communicator()
    if how == "own":
        assert shared is None
    else:
        assert (shared.threads, shared.messages, shared.size_bytes) == (threads, 2 * windows * 32, 8)


@pytest.mark.thorough
def test_the_replay_of_a_recorded_pattern_moves_the_bytes_that_were_recorded(
    any_mpi, own_process, in_process, tmp_path
):
    messages = ["0,1,1000", "0,1,1001", "0,2,0", "1,0,70000", "2,1,4096", "3,1,7"]
    (tmp_path / "exchange.csv").write_text("\n".join(["src,dst,bytes", *messages]) + "\n")
    replay = ("replay", "exchange.csv", "--layout", "1x1x4", "--mpi", any_mpi, "--launches", 1,
              "--budget", "100ms", "-o", "run")  # fmt: skip
    own_process("record", "-o", "rec", "--mpi", any_mpi, "--", EARLYBIRD, *replay, timeout=120)
    in_process("pattern", "recording", "rec", "-o", "again.csv")
    shown = in_process("show", "again.csv", "--format", "csv").stdout
    assert sorted(shown.splitlines()[1:]) == messages


@pytest.mark.parametrize(("options", "is_interposed"), [((), True), (("--no-interpose",), False)])
def test_an_exec_inside_is_recorded_and_a_program_started_by_its_name(
    any_mpi, own_process, compiled, tmp_path, options, is_interposed
):
    """The recorder finds the functions of the program also where neither folder is that of the start."""
    flavour = find_flavour(any_mpi)
    program = compiled(flavour, "record_phases", [])
    script = f'cd / && PATH={program.parent}:$PATH && echo "$LD_PRELOAD" && exec {program.name} 2 2'
    inside = (EARLYBIRD, "exec", "--mpi", any_mpi, *options, "--", "mpiexec", "-n", 2, "sh", "-c", script)
    result = own_process("record", "-o", "rec", "--mpi", any_mpi, "--", *inside, timeout=120)
    recording = load_recording(tmp_path / "rec")
    assert len(recording.ranks) == 2
    assert ("/libearlybird.so" in result.stdout) == is_interposed
    assert "exchange" in {function for phase in find_phases(recording) for function in phase.functions}


def test_on_a_full_disk_the_program_goes_on(any_mpi, compiled, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    flavour = find_flavour(any_mpi)
    program = compiled(flavour, "record_phases")
    (tmp_path / "small").mkdir()
    command = [EARLYBIRD, "record", "-o", "small/rec", "--mpi", any_mpi]
    command += ["--", "mpiexec", "-n", "2", program, "5", "5"]
    script = 'mount -t tmpfs -o size=4k none small || exit 99; "$@"; status=$?; ls -A small/rec; exit $status'
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *map(str, command)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    if result.returncode == 99 or "unshare" in result.stderr:
        pytest.skip("a mount namespace of the test's own is not permitted here")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("No space left on device; the recording of this rank ends here") == 2
    assert "ranks 0, 1 left an empty file" in result.stderr and "Traceback" not in result.stderr
    assert result.stdout.splitlines()[-3:] == ["rank-0.ebr", "rank-1.ebr", "recording.json"]


@pytest.mark.thorough
def test_on_a_file_system_without_safe_mappings_open_calls_are_as_last_written(any_mpi, compiled, tmp_path):
    """A mapped page of a file could end the program there: ramfs is none of those where it cannot."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    program = compiled(find_flavour(any_mpi), "record_completions", ["-pthread", "-rdynamic"])
    (tmp_path / "other").mkdir()
    command = [EARLYBIRD, "record", "-o", "other/rec", "--mpi", any_mpi, "--", "mpiexec", "-n", "2", program]
    script = 'mount -t ramfs none other || exit 99; exec "$@"'
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, "sh", *map(str, command), "hang"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0,
    )  # fmt: skip
    rec = Path(f"/proc/{process.pid}/root", *tmp_path.parts[1:], "other", "rec")
    try:
        end_s = time.monotonic() + 60
        while process.poll() is None and not _has_open_call(rec) and time.monotonic() < end_s:
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode == 99 or "unshare" in err:
        pytest.skip("a mount namespace of the test's own is not permitted here")
    assert "had not returned from MPI_" in err
    assert "when that was last written" in err


def _has_open_call(rec):
    """Whether the recording says that rank 1 is in a call."""
    if not (rec / "rank-1.ebr").exists():
        return False
    rank = load_recording(rec).ranks.get(1)
    return rank is not None and rank.open_call is not None


@pytest.mark.thorough
def test_ranks_on_one_core_wait_for_it(any_mpi, compiled, tmp_path):
    """Three ranks that poll: each has the core for a third of the run and waits for it in the rest."""
    flavour = find_flavour(any_mpi)
    launch = [EARLYBIRD, "record", "-o", "rec", "--mpi", any_mpi, "--", "mpiexec", "-n", "3"]
    launch += ["--oversubscribe", "--bind-to", "none"] if flavour.family == "openmpi" else []
    subprocess.run(
        [*launch, compiled(flavour, "record_phases"), "200", "2"], cwd=tmp_path, check=True, timeout=120,
        preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}),
    )  # fmt: skip
    recording = load_recording(tmp_path / "rec")
    if any(one.core_wait_s is None for one in recording.ranks.values()):
        pytest.skip("this kernel does not count how long a thread waits for a core")
    assert 0.5 < recording.core_wait_share <= 1


@pytest.mark.parametrize(
    ("command", "end"),
    [(["record"], "abort"), (["record"], "exit"), (["exec", "--stuck", "60s"], "kill")],
    ids=["abort", "exit", "kill"],
)
def test_ranks_that_end_at_once_leave_no_shared_memory(mpi, compiled, own_process, command, end):
    flavour = find_flavour(mpi)
    if not library_path(flavour).with_name(RECORDER).exists():
        pytest.skip(f"the recorder is not built for {mpi}")
    launch = ["mpiexec", "-n", "2", *(["--oversubscribe"] * (flavour.family == "openmpi"))]
    program = compiled(flavour, "ends_at_once")
    ended = own_process(*command, "--mpi", mpi, "-o", "rec", "--", *launch, program, end, check=False)
    assert ended.returncode != 0
    # Lines of two ranks may be mixed; earlybird's own pages have a test of their own.
    mapped = set(re.findall(r"/dev/shm/[\w.-]+$", ended.stdout, re.MULTILINE))
    assert mapped or mpi == "intel"  # which leaves no name
    assert [path for path in mapped if Path(path).exists()] == []
