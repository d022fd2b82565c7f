"""Traces written with the package otf2 give the messages that were written into them."""

import sys
from pathlib import Path

import pytest

from earlybird.data.errors import InputError
from earlybird.data.pattern import load_pattern
from earlybird.interop.otf2_trace import load_trace
from tests.python.interop.test_monitoring import rows, run_pattern

# Written by EZTrace 2.0 of Debian 12, which numbers two groups 0:
# mpicc.openmpi ring.c -o ring
# mpirun.openmpi -n 4 --oversubscribe eztrace -t openmpi ./ring
REAL = Path(__file__).parents[2] / "recorded" / "eztrace"

MESSAGES = [(0, 1, 100), (0, 1, 100), (0, 1, 101), (2, 0, 0), (3, 2, 1 << 33)]


@pytest.fixture
def written(tmp_path):
    """A trace of four ranks in the order 3, 2, 1, 0 of their locations; rank 1 has a second thread."""
    otf2 = pytest.importorskip("otf2")
    folder = tmp_path / "trace"
    with otf2.writer.open(str(folder), timer_resolution=10**9) as trace:
        definitions = trace.definitions
        tree = definitions.system_tree_node("node")
        processes = [
            definitions.location_group(f"process {k}", otf2.LocationGroupType.PROCESS, tree) for k in range(4)
        ]
        locations = [definitions.location("main", group=process) for process in processes]
        thread = definitions.location("thread", group=processes[2])
        by_rank = locations[::-1]
        group = dict(paradigm=otf2.Paradigm.MPI)
        definitions.group("", otf2.GroupType.COMM_LOCATIONS, members=tuple(by_rank), **group)

        def comm(*ranks):
            members = tuple(by_rank[rank] for rank in ranks)
            return definitions.comm(
                "", definitions.group("", otf2.GroupType.COMM_GROUP, members=members, **group)
            )

        world, reversed_evens = comm(0, 1, 2, 3), comm(2, 0)
        time = iter(range(1, 100))
        for src, dst, size in MESSAGES:
            writer = trace.event_writer_from_location(by_rank[src])
            writer.mpi_send(next(time), dst, world, 7, size)
        self_group = definitions.group("", otf2.GroupType.COMM_SELF, members=(), **group)
        own = definitions.comm("", self_group)
        trace.event_writer_from_location(by_rank[2]).mpi_send(next(time), 0, own, 7, 5)
        evens = trace.event_writer_from_location(by_rank[0])
        evens.mpi_isend(next(time), 0, reversed_evens, 7, 55, 1)  # to rank 2
        trace.event_writer_from_location(thread).mpi_send(next(time), 3, world, 7, 66)  # from rank 1
        trace.event_writer_from_location(by_rank[3]).mpi_recv(next(time), 0, world, 7, 9)
    return folder


def test_messages_are_those_of_the_senders(written):
    loaded = load_trace(written / "traces.otf2")
    assert loaded.num_ranks == 4
    assert rows(loaded.totals) == [
        (0, 1, 3, 301), (0, 2, 1, 55), (1, 3, 1, 66), (2, 0, 1, 0), (2, 2, 1, 5),
        (3, 2, 1, 1 << 33),
    ]  # fmt: skip


def test_the_pattern_has_exact_sizes(monkeypatch, written, tmp_path):
    assert run_pattern(monkeypatch, "otf2", written, "-o", tmp_path / "p.csv") == 0
    wanted = sorted([*map(list, MESSAGES), [0, 2, 55], [1, 3, 66]])
    assert sorted(load_pattern(tmp_path / "p.csv").triples().tolist()) == wanted


@pytest.mark.parametrize("data", [None, b"src,dst,bytes\n", b"[OTF2]\nnonsense"])
def test_what_is_no_trace_is_refused(monkeypatch, capfd, tmp_path, data):
    pytest.importorskip("otf2")
    path = tmp_path / "traces.otf2"
    if data is not None:
        path.write_bytes(data)
    assert run_pattern(monkeypatch, "otf2", path, "-o", tmp_path / "x.csv") == 2
    *_, last = capfd.readouterr().err.splitlines()
    assert last.startswith("earlybird: ") and str(path) in last
    assert not (tmp_path / "x.csv").exists()


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "_otf2", None)
    with pytest.raises(InputError, match="pip install otf2"):
        load_trace(tmp_path)


def test_a_real_trace_has_the_messages_of_its_program():
    """ring.c: three messages of 1000 (r + 1) bytes from rank r to the next; 40 bytes from 2 to 0, 3 to 1."""
    pytest.importorskip("otf2")
    loaded = load_trace(REAL)
    ring = [(rank, (rank + 1) % 4, 3, 3000 * (rank + 1)) for rank in range(4)]
    assert rows(loaded.totals) == sorted([*ring, (2, 0, 1, 40), (3, 1, 1, 40)])
    assert loaded.num_ranks == 4


def test_a_receiver_in_an_intercommunicator_is_a_rank_of_the_other_group(tmp_path):
    otf2, api = pytest.importorskip("otf2"), pytest.importorskip("_otf2")
    with otf2.writer.open(str(tmp_path / "trace"), timer_resolution=10**9) as trace:
        definitions = trace.definitions
        tree = definitions.system_tree_node("node")
        processes = [
            definitions.location_group(f"process {k}", otf2.LocationGroupType.PROCESS, tree) for k in range(4)
        ]
        locations = [definitions.location("main", group=process) for process in processes]

        def group(kind, *ranks):
            members = tuple(locations[rank] for rank in ranks)
            return definitions.group("", kind, members=members, paradigm=otf2.Paradigm.MPI)

        group(otf2.GroupType.COMM_LOCATIONS, 0, 1, 2, 3)
        first, second = (group(otf2.GroupType.COMM_GROUP, *ranks) for ranks in [(0, 2), (3, 1)])
        # The package's own objects cannot write an inter-communicator.
        api.GlobalDefWriter_WriteInterComm(
            api.Archive_GetGlobalDefWriter(trace.handle), 0, 0, first._ref, second._ref, 0xFFFFFFFF,
            api.COMM_FLAG_NONE,
        )  # fmt: skip
        for src, receiver, size in [(2, 0, 10), (3, 1, 20)]:
            events = trace.event_writer_from_location(locations[src])
            api.EvtWriter_MpiSend(events._handle, None, 1, receiver, 0, 7, size)
    assert rows(load_trace(tmp_path / "trace").totals) == [(2, 3, 1, 10), (3, 2, 1, 20)]
