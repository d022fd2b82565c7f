"""Segments that travel through memory of a node: the steps of both ways in every order, threads, the file,
the memory of another process, what is left when ranks are killed, and which transfers use it."""

import re
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import native_sources
from tests.partitioned import PLANS_FROM_64_BYTES, launch_command, run_ranks, start_environment, suite_program

PROGRAMS = Path(__file__).parent / "programs"
DIRECT_PARTS = ("direct", "direct_copy", "peer_memory")
PATHS = ("ring", "direct")
ORDER = "unequal_partition_counts_deliver_every_byte"


def compiled_of(folder, program, parts, *options):
    """Compile the program with files of the library, without an MPI."""
    built = folder / program
    names = [parts] if isinstance(parts, str) else parts
    sources = [
        PROGRAMS / f"{program}.c",
        *(native_sources() / "partitioned" / "node" / part for part in names),
    ]
    flags = ["-O2", "-pthread", "-D_GNU_SOURCE", "-I", native_sources(), *options]
    subprocess.run(["cc", *flags, *sources, "-o", built], check=True, timeout=60)
    return built


def run_parts(folder, mpi, program, parts, *options):
    """Compile the program with files of the library and an MPI's header, and run it as one process."""
    flavour = find_flavour(mpi)
    built = folder / program
    sources = [PROGRAMS / f"{program}.c", *(native_sources() / "partitioned" / part for part in parts)]
    command = [flavour.mpicc, "-O2", "-D_GNU_SOURCE", "-I", native_sources(), *options, *sources, "-o", built]
    subprocess.run(command, check=True, timeout=60, env=flavour.environment())
    ran = subprocess.run([built], capture_output=True, text=True, timeout=60, env=flavour.environment())
    assert (ran.returncode, ran.stderr) == (0, "")


def test_in_every_order_of_steps_each_byte_arrives_and_neither_side_is_stuck(tmp_path):
    program = compiled_of(tmp_path, "ring_states", ["ring.c"])
    ran = subprocess.run([program, "13"], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout.split()[0]) > 300
    for rule in ("wait", "message", "flag", "consume"):  # each is needed
        broken = subprocess.run([program, "13", rule], capture_output=True, text=True, timeout=60)
        assert broken.returncode == 1 and "reads what is not of its start" in broken.stderr, rule


def test_in_every_order_of_steps_each_chunk_is_copied_once_between_the_right_memory(tmp_path):
    program = compiled_of(tmp_path, "direct_states", ["direct.c"])
    ran = subprocess.run([program, "6"], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout.split()[0]) > 1500
    for rule, fault in (
        ("begun", "a chunk is copied that is not of both starts"),
        ("done", "the sender ends before all is copied"),
        ("stop", "a chunk is copied into memory that was given back"),
        ("idle", "a chunk is copied into memory that was given back"),
        ("failed", "neither side can go on"),
        ("leave", "the receiver uses memory that it has left"),
        ("claim", "a chunk is copied twice"),
    ):
        broken = subprocess.run([program, "6", rule], capture_output=True, text=True, timeout=60)
        assert broken.returncode == 1 and fault in broken.stderr, rule


@pytest.mark.parametrize(
    "sanitizer",
    [(), pytest.param(("-fsanitize=thread",), marks=pytest.mark.thorough)],
    ids=("plain", "thread"),
)
def test_threads_copy_side_by_side_and_every_byte_arrives(tmp_path, sanitizer):
    program = compiled_of(tmp_path, "ring_threads", ["ring.c"], *sanitizer)
    for threads in ("1", "3"):
        ran = subprocess.run([program, "400", threads], capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_another_process_opens_the_file_of_the_node_and_nothing_else(tmp_path):
    ran = subprocess.run(
        [compiled_of(tmp_path, "shared_file", ["shared_file.c"])], capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_memory_of_another_process_is_copied_whole_or_that_is_an_error(tmp_path):
    program = compiled_of(tmp_path, "peer_memory", [f"{name}.c" for name in DIRECT_PARTS])
    ran = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.mpi
def test_a_receiver_that_fails_neither_holds_its_sender_nor_disturbs_another_channel(any_mpi, tmp_path):
    parts = ("wire/node_ring.c", "node/ring.c")
    run_parts(tmp_path, any_mpi, "ring_of_channel", parts, "-Dmalloc=malloc_or_refuse")


@pytest.mark.mpi
def test_blocks_that_are_possible_are_given_and_used_again_for_a_little_less(any_mpi, tmp_path):
    run_parts(tmp_path, any_mpi, "node_pool", ("node/pool.c", "node/near_ranks.c", "node/shared_file.c"))


@pytest.mark.mpi
def test_a_direct_transfer_is_copied_by_whichever_side_is_there_and_ends_whichever_fails(any_mpi, tmp_path):
    parts = ("wire/node_direct.c", *(f"node/{name}.c" for name in DIRECT_PARTS))
    run_parts(tmp_path, any_mpi, "direct_of_channel", parts, "-Dmalloc=malloc_or_refuse")


def statistics_of(mpi, env, program=None):
    """Return what a program, or transfers of many sizes, print with their statistics."""
    flavour = find_flavour(mpi)
    variables = PLANS_FROM_64_BYTES | {"EARLYBIRD_STATS": "1"} | env
    status, text = run_ranks(flavour, 2, program or [suite_program(flavour), ORDER], variables, 60)
    assert status == 0, text[-3000:]
    return text


def starts_by_path(mpi, env, program=None):
    """Count the starts that travelled on each path, by name."""
    text = statistics_of(mpi, env, program)
    rows = re.findall(r"^ +(message|ring|direct) +(\d+) +(\d+) +(\d+) +(\d+)$", text, re.MULTILINE)
    return {path: int(starts) for path, _, starts, _, _ in rows}


@pytest.mark.mpi
def test_statistics_name_the_path_of_the_requests(mpi):
    assert starts_by_path(mpi, {"EARLYBIRD_NODE_PATH": "off"}) == {}
    assert starts_by_path(mpi, {})["ring"] == 0  # only costs of messages are stated
    for path, other in (PATHS, PATHS[::-1]):
        starts = starts_by_path(mpi, {"EARLYBIRD_NODE_PATH": path})
        assert starts[path] > 0 and starts["message"] > 0  # the first two starts of each request
        assert starts[other] == 0


@pytest.mark.mpi
@pytest.mark.one_mpi
@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({"EARLYBIRD_NODE_PATH": "ring", "EARLYBIRD_PAIR_BYTES": "4096"}, "bytes of shared memory; set"),
        ({"EARLYBIRD_NODE_PATH": "direct", "EARLYBIRD_PAIR_BYTES": "0"}, "bytes of shared memory; set"),
        ({"EARLYBIRD_NODE_PATH": "ring", "EARLYBIRD_SEGMENTS": "2"}, "EARLYBIRD_SEGMENTS or"),
    ],
    ids=("large", "none", "segments"),
)
def test_a_request_that_cannot_take_the_path_asked_for_is_reported_once(any_mpi, env, reason):
    text = statistics_of(any_mpi, env)
    path = env["EARLYBIRD_NODE_PATH"]
    reported = re.findall(rf"^earlybird: rank (\d): EARLYBIRD_NODE_PATH is {path}, but .*$", text, re.M)
    assert 1 <= len(reported) == len(set(reported)) and reason in text, text[-3000:]
    assert re.search(rf"^[1-9]\d* send requests within a node cannot use .* \({path}\)$", text, re.M)


@pytest.mark.mpi
@pytest.mark.parametrize("variable", ["EARLYBIRD_NODE_BYTES", "EARLYBIRD_PAIR_BYTES"])
@pytest.mark.parametrize("path", PATHS)
def test_without_memory_for_them_transfers_are_messages(any_mpi, variable, path):
    starts = starts_by_path(any_mpi, {"EARLYBIRD_NODE_PATH": path, variable: "0"})
    assert starts[path] == 0 and starts["message"] > 0


@pytest.mark.mpi
def test_what_a_receiver_that_failed_still_awaits_is_not_taken_from_a_later_request(mpi, compiled):
    flavour = find_flavour(mpi)
    program = compiled(flavour, "kept_tags", options=("-rdynamic",), linked=True)
    env = PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": "direct"}
    status, text = run_ranks(flavour, 2, [program], env, 60)
    assert status == 0 and "delivered\n" in text, text[-3000:]


@pytest.mark.mpi
def test_a_rank_that_copies_a_long_transfer_calls_the_mpi_meanwhile(mpi, compiled):
    flavour = find_flavour(mpi)
    program = compiled(flavour, "calls_of_wait", options=("-rdynamic",), linked=True)
    env = PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": "direct"}
    status, text = run_ranks(flavour, 2, [program], env, 60)
    # 64 MiB, of which each test copies up to 2.
    assert status == 0 and int(re.search(r"^calls (\d+)$", text, re.MULTILINE)[1]) >= 16, text[-3000:]


@pytest.mark.mpi
def test_freed_active_sends_give_their_memory_to_later_requests(mpi, compiled):
    num = 20  # the memory of a pair is that of three requests
    program = [compiled(find_flavour(mpi), "freed_sends", linked=True), 1 << 17, num]
    env = {"EARLYBIRD_NODE_PATH": "direct", "EARLYBIRD_PAIR_BYTES": "10000"}
    assert (
        starts_by_path(mpi, env, program)["direct"] == num
    )  # those of the receivers: a freed start is not counted


@pytest.mark.mpi
@pytest.mark.parametrize("path", PATHS)
def test_a_sender_goes_on_whose_receiver_fails_before_it_knows_of_their_memory(
    any_mpi, compiled, tmp_path, path
):
    flavour = find_flavour(any_mpi)
    program = compiled(flavour, "failing_wait", options=("-rdynamic",), linked=True)
    env = PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": path}
    _, text = run_ranks(flavour, 2, [program, tmp_path / "completed"], env, 60)
    assert (tmp_path / "completed").read_text() == "completed 6\n", text[-3000:]


@pytest.mark.mpi
@pytest.mark.parametrize("who", [0, 1], ids=("sender", "receiver"))
@pytest.mark.parametrize("path", PATHS)
def test_a_killed_rank_leaves_nothing_and_its_job_ends(mpi, compiled, tmp_path, path, who):
    flavour = find_flavour(mpi)
    program = compiled(flavour, "lost_rank", options=("-rdynamic",), linked=True)
    env = PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": path}
    status, text = run_ranks(flavour, 2, [program, who, tmp_path / "error"], env, 60)
    assert status not in (None, 0), text[-3000:]
    # Recordings of other tests have folders there.
    left = [one.name for one in Path("/dev/shm").iterdir() if "earlybird" in one.name and not one.is_dir()]
    assert left == []


@pytest.mark.mpi
@pytest.mark.parametrize("who", [0, 1], ids=("sender", "receiver"))
@pytest.mark.parametrize("path", PATHS)
def test_the_other_rank_gets_an_error_where_the_launcher_lets_it_live(compiled, tmp_path, path, who):
    flavour = find_flavour("mpich")
    if not suite_program(flavour).exists():
        pytest.skip("mpich is not built")
    program = compiled(flavour, "lost_rank", options=("-rdynamic",), linked=True)
    env = PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": path}
    error = tmp_path / "error"
    # The launcher sees a shell that goes on.
    shell = ["sh", "-c", "trap '' USR1; \"$@\"; true", "sh"]
    command = [flavour.mpiexec, "-disable-auto-cleanup", "-n", "2", *shell, program, str(who), error]
    subprocess.run(command, env=start_environment(flavour, 2) | env, capture_output=True, timeout=60)
    assert re.fullmatch(r"error \d+\n", error.read_text())


@pytest.mark.mpi
def test_the_memory_has_no_name_that_a_killed_job_could_leave(any_mpi):
    flavour = find_flavour(any_mpi)
    program = suite_program(flavour, "partitioned_stress")
    job = subprocess.Popen(
        [*launch_command(flavour, 2), program, "--transfers", "5000"],
        env=start_environment(flavour, 2) | PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": "ring"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    ranks = set()
    while job.poll() is None:  # not killed: MPICH would leave files of its own
        children = psutil.Process(job.pid).children(recursive=True) if job.poll() is None else []
        ranks |= {rank.pid for rank in children if _maps_memory(rank)}
        time.sleep(0.02)
    assert job.returncode == 0 and len(ranks) == 2


def _maps_memory(rank):
    """Whether the process maps memory of the node, which must be of a file without a name."""
    try:
        return "/memfd:earlybird (deleted)" in Path(f"/proc/{rank.pid}/maps").read_text()
    except OSError:
        return False
