"""The partitioned library against its cases: every flavour, numbers of ranks, modes and thread levels."""

import functools
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from earlybird.data.errors import InputError
from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import build_native, features
from tests.partitioned import PLANS_FROM_64_BYTES, Outcome, run_cases, run_ranks, suite_program

pytestmark = pytest.mark.mpi
SOURCES = Path(__file__).parents[2] / "native" / "tests"
# Which case is of which family is read from the sources: the names must be known where nothing is built.
FAMILIES = {
    path.stem.removesuffix("_cases"): re.findall(r'^    \{"(\w+)",', path.read_text(), re.MULTILINE)
    for path in sorted(SOURCES.glob("*_cases.c"))
    if path.stem != "partitioned_cases"
}
EVERYWHERE = tuple(family for family in FAMILIES if family != "size")
# With 15 bits, requests run out of tags sooner.
HUNDRED_THOUSAND = (
    "a_hundred_thousand_requests_of_one_tag_can_be_made_and_freed",
    "a_hundred_thousand_requests_of_many_tags_can_be_made_and_freed",
)
# The library has tags at hand for MPI_COMM_WORLD alone; requests on other communicators are announced.
DUPLICATE = {"EARLYBIRD_TESTS_DUPLICATE": "1"}
IN_SHARED_MEMORY = PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": "ring"}
DIRECT = PLANS_FROM_64_BYTES | {"EARLYBIRD_NODE_PATH": "direct"}
# One message up to 100 kB; two, or four, of at most as much.
SEVERAL_IN_FIRST_START = {"EARLYBIRD_COSTS": "intra_node_protocols=0:1e-6:1e-7:1e10,100000:1e-3:1e-3:1e10"}
WITHOUT_TAGS = {"EARLYBIRD_TAG_BITS": "15", "EARLYBIRD_TESTS_WITHOUT_TAGS": "1"} | DUPLICATE
TRANSFERS_OF_A_LAUNCH = 1500  # `python -m bench partitioned-soak` has many more


@dataclass(frozen=True)
class Launch:
    """One launch of the program with the cases of some families, on all flavours or on one."""

    name: str
    num_ranks: int
    level: str
    env: dict[str, str] = field(default_factory=dict)
    families: tuple[str, ...] = EVERYWHERE
    only: str | None = None
    without: tuple[str, ...] = ()
    thorough: bool = False  # takes seconds, and repeats the cases of a launch that every session has
    one_mpi: bool = False  # what it changes is the library's own, whatever the MPI

    def cases(self) -> list[str]:
        cases = [case for family in self.families for case in FAMILIES[family]]
        return [case for case in cases if case not in self.without]


LAUNCHES = {
    launch.name: launch
    for launch in (
        Launch("2_ranks", 2, "multiple", without=HUNDRED_THOUSAND),
        # What another number of ranks, mode, tag space or communicator can change; all of it is run above.
        Launch(
            "3_ranks_on_a_duplicate",
            3,
            "funneled",
            DUPLICATE,
            ("order", "matching", "communicator", "mixture", "error", "type"),
            thorough=True,
            one_mpi=True,
        ),
        Launch("4_ranks", 4, "multiple", {}, ("order", "thread"), thorough=True, one_mpi=True),
        Launch(
            "one_segment_per_partition",
            2,
            "serialized",
            {"EARLYBIRD_SEGMENTS": "partition", "EARLYBIRD_LANES": "2"},
            ("order", "type", "mixture", "progress", "counting"),
        ),
        Launch(
            "four_segments", 2, "single", {"EARLYBIRD_SEGMENTS": "4"}, ("order", "type", "error", "counting")
        ),
        Launch(
            "segments_of_16_KiB",
            2,
            "multiple",
            {"EARLYBIRD_AGGR_SIZE": "16384"},
            ("order", "progress", "thread", "counting"),
            thorough=True,
            one_mpi=True,
        ),
        Launch(
            "15_tag_bits",
            2,
            "multiple",
            {"EARLYBIRD_TAG_BITS": "15"},
            ("matching", "communicator"),
            thorough=True,
            one_mpi=True,
        ),
        # Costs at which the smallest transfers exchange plans, too.
        Launch(
            "plans_from_64_bytes",
            2,
            "multiple",
            PLANS_FROM_64_BYTES,
            ("order", "type", "matching", "ending"),
            without=HUNDRED_THOUSAND,
        ),
        # First starts of one, two and four messages, by the total.
        Launch(
            "several_messages_in_the_first_start",
            2,
            "multiple",
            SEVERAL_IN_FIRST_START,
            ("error",),
            one_mpi=True,
        ),
        # Threads that call side by side all the same, and requests that end otherwise than by a wait.
        # The sanitizers run the threads at MPI_THREAD_FUNNELED.
        Launch("threads_at_single", 2, "single", {}, ("level", "ending")),
        # Channels of more segments than one id has tags for.
        Launch(
            "15_tag_bits_for_many_segments",
            2,
            "multiple",
            {"EARLYBIRD_TAG_BITS": "15", "EARLYBIRD_SEGMENTS": "partition"},
            ("matching",),
            without=HUNDRED_THOUSAND,
            thorough=True,
            one_mpi=True,
        ),
        # All tags are taken, so that every request sends frames.
        Launch(
            "without_tags",
            2,
            "multiple",
            WITHOUT_TAGS,
            ("type", "matching", "mixture", "error", "ending"),
            without=HUNDRED_THOUSAND,
        ),
        Launch(
            "without_tags_beside_threads",
            2,
            "multiple",
            WITHOUT_TAGS,
            ("order", "progress", "thread"),
            thorough=True,
        ),
        Launch(
            "progress_thread",
            2,
            "multiple",
            {"EARLYBIRD_PROGRESS_THREAD": "1"},
            ("mixture", "progress"),
        ),
        Launch("two_lanes", 2, "multiple", {"EARLYBIRD_LANES": "2"} | DUPLICATE, ("lane", "order")),
        Launch("lanes_below_multiple", 2, "serialized", {"EARLYBIRD_LANES": "2"}, ("lane",)),
        Launch(
            "sixteen_lanes",
            2,
            "multiple",
            {"EARLYBIRD_LANES": "16", "EARLYBIRD_SEGMENTS": "partition"},
            ("lane", "mixture", "ending"),
            thorough=True,
        ),
        Launch(
            "a_lane_that_a_rank_lacks",
            2,
            "multiple",
            {"EARLYBIRD_LANES": "2", "EARLYBIRD_TESTS_LACKING_LANE": "1"},
            ("lane",),
            thorough=True,
            one_mpi=True,
        ),
        # Segments are copied through memory that the two ranks share, from the third start on.
        Launch("in_shared_memory", 2, "multiple", IN_SHARED_MEMORY, ("order", "type", "ending", "thread")),
        Launch(
            "in_shared_memory_below_multiple",
            2,
            "single",
            IN_SHARED_MEMORY | {"EARLYBIRD_LANES": "2"},
            ("order", "level", "memory"),
            thorough=True,
            one_mpi=True,
        ),
        # The system copies segments from one rank's memory to the other's, from the third start on.
        Launch("direct", 2, "multiple", DIRECT, ("order", "type", "ending", "thread")),
        Launch(
            "direct_below_multiple",
            2,
            "single",
            DIRECT | {"EARLYBIRD_LANES": "2"},
            ("order", "level", "memory"),
        ),
        Launch(
            "direct_between_three",
            3,
            "multiple",
            DIRECT | DUPLICATE,
            ("order", "matching", "communicator", "mixture", "progress", "error", "type", "ending", "memory"),
            without=HUNDRED_THOUSAND,
            thorough=True,
            one_mpi=True,
        ),
        Launch(
            "in_shared_memory_between_three",
            3,
            "multiple",
            IN_SHARED_MEMORY | DUPLICATE,
            ("order", "matching", "communicator", "mixture", "progress", "error", "type", "ending", "memory"),
            without=HUNDRED_THOUSAND,
            thorough=True,
            one_mpi=True,
        ),
        # MPICH's lanes have a context of its own each.
        Launch(
            "four_lanes",
            2,
            "multiple",
            {"EARLYBIRD_LANES": "4", "MPIR_CVAR_CH4_NUM_VCIS": "4"},
            ("lane", "thread", "communicator"),
            thorough=True,
            one_mpi=True,
        ),
        # Intel MPI's tags end at 2^19 - 1 there.
        Launch(
            "over_tcp",
            2,
            "multiple",
            {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp"},
            ("matching", "progress", "mixture"),
            "intel",
        ),
    )
}


@functools.cache
def outcomes(mpi: str, launch_name: str) -> dict[str, Outcome]:
    launch = LAUNCHES[launch_name]
    return run_cases(
        find_flavour(mpi),
        launch.num_ranks,
        launch.cases(),
        ["--level", launch.level],
        launch.env,
        timeout_s=120,
        max_launches=2,
    )


def _marks(launch: Launch) -> tuple[pytest.MarkDecorator, ...]:
    return ((pytest.mark.thorough,) if launch.thorough else ()) + (
        (pytest.mark.one_mpi,) if launch.one_mpi else ()
    )


@pytest.mark.parametrize(
    ("launch", "case"),
    [
        pytest.param(launch.name, case, marks=_marks(launch))
        for launch in LAUNCHES.values()
        for case in launch.cases()
    ],
)
def test_partitioned(mpi, launch, case):
    if LAUNCHES[launch].only not in (None, mpi):
        pytest.skip(f"a launch of {LAUNCHES[launch].only}")
    outcome = outcomes(mpi, launch)[case]
    if outcome.status == "skipped":
        pytest.skip(outcome.why)
    assert outcome.status == "ok", outcome.why


@pytest.mark.parametrize(
    "launch", [pytest.param(launch.name, marks=_marks(launch)) for launch in LAUNCHES.values()]
)
def test_finalize_returns_after_all_cases(mpi, launch):
    if LAUNCHES[launch].only not in (None, mpi):
        pytest.skip(f"a launch of {LAUNCHES[launch].only}")
    assert outcomes(mpi, launch)["finalize_returns"].status == "ok"


@pytest.mark.parametrize(
    ("num_ranks", "level", "env"),
    [
        (2, "multiple", {}),
        (3, "single", {}),
        (2, "multiple", {"EARLYBIRD_SEGMENTS": "partition"}),
        (3, "multiple", IN_SHARED_MEMORY),
        pytest.param(3, "multiple", DIRECT, marks=pytest.mark.thorough),
    ],
)
def test_random_transfers_deliver_every_byte(mpi, num_ranks, level, env):
    """EARLYBIRD_STRESS_SEED and EARLYBIRD_STRESS_TRANSFERS ask for another series, or a longer one."""
    flavour = find_flavour(mpi)
    seed = os.environ.get("EARLYBIRD_STRESS_SEED", "20211")
    transfers = os.environ.get("EARLYBIRD_STRESS_TRANSFERS", str(TRANSFERS_OF_A_LAUNCH))
    limit_s = 60 + int(transfers) // 200
    options = ["--transfers", transfers, "--seed", seed, "--level", level, "--seconds", str(limit_s)]
    status, output = run_ranks(
        flavour, num_ranks, [suite_program(flavour, "partitioned_stress"), *options], env, limit_s + 20
    )
    assert status == 0, f"seed {seed}: {output[-3000:]}"
    assert int(re.search(r"^transfers (\d+)", output, re.MULTILINE)[1]) >= int(transfers)


def test_what_ends_a_request_against_the_standard_is_reported_once(mpi):
    cases = [case for case in FAMILIES["ending"] if "cancelling" in case or "send" in case]
    assert len(cases) == 2
    status, text = run_ranks(find_flavour(mpi), 2, [suite_program(find_flavour(mpi)), *cases, *cases], {}, 60)
    assert status == 0, text[-3000:]
    assert sorted(re.findall(r"earlybird: (rank \d): MPI_Cancel was called", text)) == ["rank 0", "rank 1"]
    num_reported = len(re.findall("earlybird: rank 0: MPI_Request_free was called", text))
    # Intel MPI 2021.18 may complete sends of 1 MB in shared memory before their receives are posted, if the
    # receiver is in any of its calls. A complete send may be freed.
    assert num_reported in ((0, 1) if mpi == "intel" else (1,))


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("EARLYBIRD_SEGMENTS", "some", "set it to auto, partition or a number of segments, or unset it"),
        ("EARLYBIRD_AGGR_SIZE", "16k", "set it to a number of bytes, such as 16384, or unset it"),
        ("EARLYBIRD_LANES", "17", "set it to 1 to 16, or unset it"),
        ("EARLYBIRD_NODE_PATH", "shm", "set it to auto, off, ring or direct, or unset it"),
        (
            "EARLYBIRD_PAIR_BYTES",
            "1M",
            "set it to a number of bytes up to 1 TiB, such as 1048576, or unset it",
        ),
    ],
    ids=("segments", "aggr_size", "lanes", "node_path", "pair_bytes"),
)
def test_a_variable_without_sense_ends_the_job_with_the_remedy(variable, value, remedy):
    flavour = find_flavour("mpich")
    if not suite_program(flavour).exists():
        pytest.skip("mpich is not built")
    command = [suite_program(flavour), FAMILIES["order"][0]]
    status, text = run_ranks(flavour, 2, command, {variable: value}, 60)
    assert status == 2 and text.count(f"earlybird: {variable} is '{value}'; {remedy}\n") == 1, text[-3000:]


@pytest.mark.parametrize("lanes", [1, 2])
def test_statistics_count_the_segments_of_each_lane_and_those_that_found_it_taken(mpi, lanes):
    flavour = find_flavour(mpi)
    (case,) = [name for name in FAMILIES["lane"] if "taken" in name]
    env = {"EARLYBIRD_LANES": str(lanes), "EARLYBIRD_STATS": "1"}
    status, text = run_ranks(flavour, 2, [suite_program(flavour), case], env, 60)
    assert status == 0, text[-3000:]
    rows = [list(map(int, line)) for line in re.findall(r"^ +(\d+) +(\d+) +(\d+)$", text, re.MULTILINE)]
    assert [lane for lane, _, _ in rows] == list(range(lanes))
    assert sum(taken for _, _, taken in rows) == 2  # of each rank's last start
    segments = sum(int(line.split()[5]) for line in text.splitlines() if " sends " in line)
    assert sum(used for _, used, _ in rows) == segments > 0


def test_an_error_of_an_argument_ends_a_job_with_its_message_by_default(mpi, compiled):
    program = compiled(find_flavour(mpi), "fatal_argument", linked=True)
    status, text = run_ranks(find_flavour(mpi), 1, [program], {}, 60)
    assert status not in (0, None)
    assert "the datatype of a partitioned transfer is not committed" in text, text[-3000:]


def test_too_many_segments_are_named_as_what_they_are(any_mpi, compiled):
    program = compiled(find_flavour(any_mpi), "range_ready", linked=True)
    env = {"EARLYBIRD_SEGMENTS": "partition"}
    status, text = run_ranks(find_flavour(any_mpi), 1, [program, str(2**24 + 1)], env, 60)
    assert status not in (0, None)
    assert "more than 2^24 segments" in text and "out of memory" not in text, text[-3000:]


def test_what_a_range_sends_before_its_last_partition_is_early(any_mpi, compiled):
    """Of so many segments that the call does not go through the partitions."""
    program = compiled(find_flavour(any_mpi), "range_ready", linked=True)
    env = {"EARLYBIRD_SEGMENTS": "partition", "EARLYBIRD_STATS": "1"}
    status, text = run_ranks(find_flavour(any_mpi), 1, [program, "70000"], env, 60)
    assert status == 0, text[-3000:]
    (early_us,) = (float(line.split()[-1]) for line in text.splitlines() if " sends " in line)
    assert early_us > 0


def outcomes_in(text: str, names: Sequence[str]) -> dict[str, str]:
    """The status in the lines that report these cases, which several worlds print."""
    ended = {name: status for status, name in re.findall(r"^(ok|failed) (\w+)", text, re.MULTILINE)}
    return {name: ended.get(name, "did not end") for name in names}


def test_worlds_that_spawn_and_are_spawned_deliver_and_stay_apart(mpi):
    flavour = find_flavour(mpi)
    # Intel MPI 2021.18 crashes in MPI_Comm_spawn where it has shared memory alone.
    env = {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp", "I_MPI_SPAWN": "on"} if mpi == "intel" else {}
    status, text = run_ranks(flavour, 2, [suite_program(flavour, "partitioned_spawn")], env, 60)
    names = [
        f"{who}_{what}"
        for who in ("parents", "children")
        for what in (
            "deliver_within_their_world",
            "are_left_to_the_MPI_between_worlds",
            "deliver_beside_another_world",
            "end",
        )
    ]
    assert outcomes_in(text, names) == dict.fromkeys(names, "ok"), text[-3000:]
    assert status == 0, text[-3000:]


# Messages that each MPI moves only while their sender is in one of its calls (docs/results/partitioned.md).
# Intel MPI's receivers fetch those of 16 MiB by themselves.
NO_PROGRESS = {
    "mpich": (32 << 20, {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}),
    "openmpi": (1 << 20, {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "tcp,self"}),
    "intel": (4 << 20, {"I_MPI_FABRICS": "shm"}),
}


@pytest.mark.parametrize(("thread", "arrives", "limit_s"), [("0", "late", 0.5), ("1", "early", 20)])
def test_the_progress_thread_moves_segments_while_the_sender_computes(
    mpi, tmp_path, thread, arrives, limit_s
):
    flavour = find_flavour(mpi)
    size_bytes, env = NO_PROGRESS[mpi]
    env = env | {"EARLYBIRD_PROGRESS_THREAD": thread, "EARLYBIRD_SEGMENTS": "partition"}
    command = [suite_program(flavour, "partitioned_early"), size_bytes, limit_s, tmp_path / "arrived"]
    status, text = run_ranks(flavour, 2, command, env, 60)
    assert status == 0, text[-3000:]
    assert re.findall("^(?:early|late)$", text, re.MULTILINE) == [arrives]


def test_threads_that_poll_for_partitions_of_both_directions_end(mpi):
    """More threads than cores on two of them; the program itself checks the data."""
    flavour = find_flavour(mpi)
    command = [suite_program(flavour, "partitioned_polling"), 2, 8, 65536, 40]
    status, text = run_ranks(flavour, 2, command, {}, 60)
    assert status == 0 and re.search(r"^mean \d+\.\d\d us, median", text, re.MULTILINE), text[-3000:]


def test_an_open_mpi_without_partitioned_calls_has_ours():
    """Debian's libopenmpi-dev and openmpi-bin."""
    try:
        flavour = find_flavour("system")
    except InputError as error:
        pytest.skip(str(error))
    if flavour.family != "openmpi" or not flavour.version.startswith("4.1."):
        pytest.skip(f"{flavour.mpicc} is of {flavour.family} {flavour.version}, not of Open MPI 4.1")
    if Path("/usr") not in flavour.mpicc.parents:
        pytest.skip(f"{flavour.mpicc} is not the system's")
    build_native(flavour, print)
    assert not features(flavour)["has_partitioned"]
    cases = [case for family in ("order", "matching", "mixture", "error") for case in FAMILIES[family]]
    found = run_cases(flavour, 2, cases, timeout_s=60, max_launches=2)
    assert {name: outcome for name, outcome in found.items() if outcome.status == "failed"} == {}
