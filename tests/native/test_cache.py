"""What libearlybird keeps from run to run: its text, its folder, and what a run makes of both."""

import ctypes
import os
import re
import resource
import stat
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_void_p
from pathlib import Path

import pytest

from earlybird.machine.flavours import find_flavour
from earlybird.toolchain.build import library_path, native_sources
from tests.core_library import MAX_PROTOCOLS, Cost, Cut, cost_of
from tests.partitioned import run_ranks, suite_program

MAX_RESULTS, MAX_BYTES = 64, 65536
IDENTITY = b"machine m\nmpi x\nsettings s\n"
DAY_S, NOW = 86400, 1_800_000_000


class KeptCost(ctypes.Structure):
    _fields_ = (
        ("cost", Cost),
        ("measured", c_int64),
        ("tried", c_int64),
        ("is_steady", c_bool),
        ("is_doubted", c_bool),
    )


class Result(ctypes.Structure):
    _fields_ = (
        ("level", c_int),
        ("num_partitions", c_int),
        ("paths", c_uint),
        ("total_bytes", c_int64),
        ("first_s", c_double),
        ("half_s", c_double),
        ("won_s", c_double),
        ("found", c_int64),
        ("cut", Cut),
    )


class Cache(ctypes.Structure):
    _fields_ = (("costs", KeptCost * 4), ("num_results", c_int), ("results", Result * MAX_RESULTS))


class Run(ctypes.Structure):
    _fields_ = (
        ("mpi", c_char_p),
        ("is_multiple", c_bool),
        ("has_progress_thread", c_bool),
        ("is_crowded", c_bool),
        ("num_lanes", c_int),
        ("node_path", c_int),
        ("shared", c_char_p),
    )


class Identity(ctypes.Structure):
    _fields_ = (("text", ctypes.c_char * 1024), ("name", ctypes.c_char * 128))


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """The files of native/partitioned/cache and what they need, which know no MPI."""
    library = tmp_path_factory.mktemp("cache") / "cache.so"
    sources = native_sources() / "partitioned"
    files = [*sorted((sources / "cache").glob("*.c"))]
    files += [sources / "segmentation" / f"{name}.c" for name in ("cost", "planner")]
    command = ["cc", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", f"-I{native_sources()}"]
    subprocess.run([*command, *files, "-o", library, "-lm"], check=True, timeout=60)
    loaded = ctypes.CDLL(str(library))
    signatures = {
        "eb_cache_parse": (c_bool, c_char_p, c_size_t, c_char_p, POINTER(Cache)),
        "eb_cache_print": (c_size_t, POINTER(Cache), c_char_p, c_char_p),
        "eb_cache_add": (None, POINTER(Cache), POINTER(Result)),
        "eb_cache_expire": (None, POINTER(Cache), c_int64),
        "eb_kept_cost_is_due": (c_bool, POINTER(KeptCost), c_int64),
        "eb_kept_cost_renew": (None, POINTER(KeptCost), POINTER(KeptCost)),
        "eb_placement_shared": (c_char_p, c_char_p, c_void_p, c_void_p),
        "eb_store_folder": (c_bool, c_char_p, c_char_p),
        "eb_store_is_writable": (c_bool, c_char_p),
        "eb_store_read": (c_void_p, c_char_p, c_char_p, c_size_t, POINTER(c_size_t)),
        "eb_store_write": (c_char_p, c_char_p, c_char_p, c_char_p, c_size_t, c_int),
        "eb_store_remove": (c_bool, c_char_p, c_char_p, c_void_p),
        "eb_identity_prefix": (None, c_char_p, c_char_p),
        "eb_identity_of": (None, POINTER(Run), POINTER(Identity)),
    }
    for name, (result, *arguments) in signatures.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def kept_cost(latency_s=1e-6, measured=NOW, steady=True, doubted=False, tried=None):
    protocols = [(0, latency_s, 1e-7, 1e9), (65536, 2 * latency_s, 1e-6, 1e10)]
    return KeptCost(cost_of(protocols), measured, measured if tried is None else tried, steady, doubted)


def result(total_bytes=8192, partitions=4, found=NOW, first_s=1e-3, level=0, ends=None, path=0, paths=1):
    ends = ends or [total_bytes // 2, total_bytes]
    cut = Cut(len(ends), path, (c_int64 * 32)(*ends))
    return Result(level, partitions, paths, total_bytes, first_s, first_s / 2, 0.75, found, cut)


def text_of(native, cache):
    text = ctypes.create_string_buffer(MAX_BYTES)
    length = native.eb_cache_print(byref(cache), IDENTITY, text)
    return text.raw[:length]


def parse(native, text, identity=IDENTITY):
    cache = Cache()
    return cache if native.eb_cache_parse(text, len(text), identity, byref(cache)) else None


def full(native):
    """A cache with all that there may be."""
    cache = Cache()
    protocols = [(size << 10, -1.23456789e-6, 1.23456789e-7, 1.23456789e10) for size in range(MAX_PROTOCOLS)]
    for level in range(3):
        cache.costs[level] = KeptCost(cost_of(protocols), NOW, NOW, True, False)
    for k in range(MAX_RESULTS):
        total = 10**15 + k
        ends = [total - 31 + s for s in range(32)]
        native.eb_cache_add(byref(cache), byref(result(total, found=NOW + k, ends=ends, path=k % 2)))
    return cache


def test_what_is_written_is_read_again(native):
    cache = full(native)
    text = text_of(native, cache)
    read = parse(native, text)
    assert read is not None and text_of(native, read) == text
    assert read.costs[1].cost.num == MAX_PROTOCOLS
    assert read.costs[0].cost.protocols[3].latency_s == pytest.approx(-1.23457e-6)
    assert read.num_results > MAX_RESULTS / 2
    assert read.results[0].cut.ends() == cache.results[0].cut.ends()
    assert len(text) <= MAX_BYTES
    empty = parse(native, text_of(native, Cache()))
    assert empty is not None and empty.num_results == empty.costs[0].cost.num == 0


def test_every_damaged_byte_and_every_end_is_noticed(native):
    cache = Cache()
    cache.costs[0] = kept_cost()
    native.eb_cache_add(byref(cache), byref(result()))
    text = text_of(native, cache)
    assert parse(native, text)
    for place in range(len(text)):
        for byte in (0, text[place] ^ 1, text[place] ^ 64):
            damaged = text[:place] + bytes([byte]) + text[place + 1 :]
            assert parse(native, damaged) is None, damaged
        assert parse(native, text[:place]) is None


def test_files_of_another_machine_or_version_are_not_used(native):
    text = text_of(native, Cache())
    assert parse(native, text) is not None
    assert parse(native, text, b"machine n\nmpi x\nsettings s\n") is None
    other = text.replace(b"earlybird-cache 3", b"earlybird-cache 4")
    assert parse(native, with_hash(other.rpartition(b"end ")[0])) is None
    assert parse(native, with_hash(text.rpartition(b"end ")[0])) is not None


def with_hash(text):
    value = 0xCBF29CE484222325
    for byte in text:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return text + b"end %016x\n" % value


def result_line(level=b"intra_node", total=2, partitions=1, first_s=b"0", ends=b"2", path=b"message"):
    values = b"%b bytes=%d partitions=%d first_s=%b half_s=0" % (level, total, partitions, first_s)
    return b"result %b won_s=1 found=1 paths=3 path=%b ends=%b\n" % (values, path, ends)


WRONG = {
    "unknown line": b"remark\n",
    "unknown level": result_line(level=b"on_mars"),
    "unknown path": result_line(path=b"bottle"),
    "end before": result_line(ends=b"1"),
    "ends twice": result_line(ends=b"1,1,2"),
    "no partition": result_line(partitions=0),
    "no number": result_line(first_s=b"nan"),
    "too many ends": result_line(total=40, ends=b",".join(b"%d" % end for end in range(1, 41))),
    "costs twice": 2 * b"costs intra_node measured=1 tried=1 steady=1 doubted=0 protocols=0:1:1:1\n",
    "costs of nothing": b"costs intra_node measured=1 tried=1 steady=1 doubted=0 protocols=\n",
    "too many results": b"".join(result_line(total=k, ends=b"%d" % k) for k in range(1, MAX_RESULTS + 2)),
}


@pytest.mark.parametrize("lines", WRONG.values(), ids=WRONG)
def test_lines_out_of_range_are_refused(native, lines):
    assert parse(native, with_hash(b"earlybird-cache 3\n" + IDENTITY + result_line())) is not None
    assert parse(native, with_hash(b"earlybird-cache 3\n" + IDENTITY + lines)) is None


def test_a_newer_result_replaces_one_of_the_same_transfers_and_the_oldest_goes(native):
    cache = Cache()
    for k in range(MAX_RESULTS):
        native.eb_cache_add(byref(cache), byref(result(1024 * (k + 1), found=NOW + k)))
    native.eb_cache_add(byref(cache), byref(result(2048, found=NOW + 100, first_s=1.1e-3)))
    native.eb_cache_add(byref(cache), byref(result(4096, found=NOW - 100)))  # older than what is there
    assert cache.num_results == MAX_RESULTS
    native.eb_cache_add(byref(cache), byref(result(2048, found=NOW + 101, first_s=3e-3)))  # others
    by_size = {(one.total_bytes, one.first_s): one.found for one in cache.results[: cache.num_results]}
    assert by_size[2048, 1.1e-3] == NOW + 100 and by_size[2048, 3e-3] == NOW + 101
    assert by_size[4096, 1e-3] == NOW + 3
    assert (1024, 1e-3) not in by_size and len(by_size) == MAX_RESULTS


def test_results_are_alike_by_the_time_of_a_message(native):
    """10 us apart, near 0: much for a quick message, little for a slow one."""
    for latency_s, num in ((1e-6, 2), (200e-6, 1)):
        cache = Cache()
        cache.costs[0] = kept_cost(latency_s)
        for first_s in (1e-6, 11e-6):
            native.eb_cache_add(byref(cache), byref(result(first_s=first_s)))
        assert cache.num_results == num


def test_old_results_are_not_used(native):
    cache = Cache()
    for k, found in enumerate((NOW - 40 * DAY_S, NOW - DAY_S, NOW + DAY_S)):
        native.eb_cache_add(byref(cache), byref(result(1024 * (k + 1), found=found)))
    native.eb_cache_expire(byref(cache), NOW)
    assert [one.total_bytes for one in cache.results[: cache.num_results]] == [2048]


def test_costs_are_measured_again_after_days_and_doubtful_ones_soon(native):
    def is_due(cost):
        return native.eb_kept_cost_is_due(byref(cost), NOW)

    assert is_due(KeptCost())
    assert not is_due(kept_cost(measured=NOW - DAY_S))
    assert is_due(kept_cost(measured=NOW - 8 * DAY_S))
    assert is_due(kept_cost(measured=NOW + DAY_S))  # the clock was wrong
    assert not is_due(kept_cost(measured=NOW - 60, steady=False))
    assert is_due(kept_cost(measured=NOW - 3600, steady=False))
    assert is_due(kept_cost(measured=NOW - 8 * DAY_S, tried=NOW - 3600, doubted=True))


def test_costs_of_a_busy_machine_replace_nothing_better(native):
    def renewed(kept, measured):
        native.eb_kept_cost_renew(byref(kept), byref(measured))
        assert kept.tried == measured.measured
        return kept.cost.protocols[0].latency_s, kept.is_doubted

    old = NOW - 8 * DAY_S
    assert renewed(KeptCost(), kept_cost(2e-6, steady=False)) == (2e-6, False)
    assert renewed(kept_cost(1e-6, old), kept_cost(0.9e-6, steady=False)) == (1e-6, False)
    assert renewed(kept_cost(1e-6, old, steady=False), kept_cost(2e-6, steady=False)) == (1e-6, False)
    assert renewed(kept_cost(1e-6, old, steady=False), kept_cost(0.9e-6, steady=False)) == (0.9e-6, False)
    assert renewed(kept_cost(1e-6, old, steady=False), kept_cost(2e-6)) == (2e-6, False)
    assert renewed(kept_cost(1e-6, old), kept_cost(0.5e-6)) == (0.5e-6, False)
    # Much slower: believed the second time, and at once if the kept ones are too old.
    kept = kept_cost(1e-6, old)
    assert renewed(kept, kept_cost(9e-6, NOW - 3600)) == (1e-6, True)
    assert renewed(kept, kept_cost(9e-6, NOW - 1800, steady=False)) == (1e-6, True)
    assert renewed(kept, kept_cost(9e-6)) == (9e-6, False)
    kept = kept_cost(1e-6, old)
    assert renewed(kept, kept_cost(9e-6, NOW - 3600)) == (1e-6, True)
    assert renewed(kept, kept_cost(1.1e-6)) == (1.1e-6, False)
    assert renewed(kept_cost(1e-6, NOW - 40 * DAY_S), kept_cost(9e-6, steady=False)) == (9e-6, False)


def write(native, folder, name="a.cache", text=b"text", max_files=64):
    return native.eb_store_write(os.fsencode(folder), name.encode(), text, len(text), max_files)


def read(native, folder, name="a.cache"):
    length = c_size_t()
    text = native.eb_store_read(os.fsencode(folder), name.encode(), MAX_BYTES, byref(length))
    return None if text is None else ctypes.string_at(text, length.value)


def test_the_folder_is_that_of_the_variable_or_of_the_user(native, tmp_path, monkeypatch):
    folder = ctypes.create_string_buffer(4096)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")

    def folder_of(value):
        return folder.value.decode() if native.eb_store_folder(value, folder) else None

    assert folder_of(b"/site") == "/site"
    assert folder_of(b"here") == f"{tmp_path}/here"
    assert folder_of(b"off") is None
    assert folder_of(b"") == folder_of(None) == "/cache/earlybird"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    assert folder_of(b"") == "/home/me/.cache/earlybird"
    monkeypatch.delenv("HOME")
    assert folder_of(b"") is None


def test_files_are_replaced_as_a_whole_and_for_the_user_only(native, tmp_path):
    folder = tmp_path / "some" / "where"
    assert write(native, folder) is None
    assert write(native, folder, text=b"other") is None
    assert read(native, folder) == b"other"
    assert [path.name for path in folder.iterdir()] == ["a.cache"]
    assert stat.S_IMODE((folder / "a.cache").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_a_link_a_pipe_or_a_folder_in_place_of_the_file_does_no_harm(native, tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("mine")
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "a.cache").symlink_to(outside)
    assert read(native, folder) is None
    assert write(native, folder) is None
    assert outside.read_text() == "mine" and read(native, folder) == b"text"
    os.mkfifo(folder / "b.cache")
    assert read(native, folder, "b.cache") is None
    (folder / "c.cache").mkdir()
    (folder / "c.cache" / "file").touch()
    assert read(native, folder, "c.cache") is None
    assert write(native, folder, "c.cache")
    assert sorted(path.name for path in folder.iterdir()) == ["a.cache", "b.cache", "c.cache"]


def test_what_cannot_be_written_leaves_nothing_and_says_why(native, tmp_path):
    (tmp_path / "file").touch()
    assert write(native, tmp_path / "file") == b"Not a directory"
    assert write(native, tmp_path / "file" / "below") == b"Not a directory"
    assert write(native, "/proc/nowhere") == b"No such file or directory"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3, limits[1]))  # beyond which a signal would end the process
    try:
        assert write(native, tmp_path / "cache") == b"File too large"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list((tmp_path / "cache").iterdir()) == []
    (tmp_path / "cache" / "a.cache").write_bytes(b"x" * (MAX_BYTES + 1))
    assert read(native, tmp_path / "cache") is None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
def test_a_full_disk_leaves_the_file_of_before(native, tmp_path):
    """A file system of one page; the test skips where the system lets no user make one."""
    script = "mount -t tmpfs -o size=4k none {0} && cd {0} && python3 -c '{1}'"
    program = (
        'import ctypes, os; n = ctypes.CDLL(os.environ["CACHE"]); n.eb_store_write.restype = ctypes.c_char_p;'
        'w = lambda t: n.eb_store_write(b".", b"a.cache", t, ctypes.c_size_t(len(t)), 64);'
        'print(w(b"kept"), w(b"x" * 60000), os.listdir("."), open("a.cache").read())'
    )
    (tmp_path / "full").mkdir()
    command = ["unshare", "-rm", "sh", "-c", script.format(tmp_path / "full", program)]
    environment = os.environ | {"CACHE": native._name}
    made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if made.returncode != 0:
        pytest.skip(f"no file system of its own: {made.stderr[-200:]}")
    assert made.stdout == "None b'No space left on device' ['a.cache'] kept\n"


def own_name(k):
    return f"mpi-1.0-{k:016x}-{k:016x}.cache"


def test_the_number_of_files_is_bounded_and_abandoned_ones_go(native, tmp_path):
    old = time.time() - 7200
    for k in range(6):
        (tmp_path / own_name(k)).write_bytes(b"earlybird-cache 3\n")
        os.utime(tmp_path / own_name(k), (old + k, old + k))
    left = [tmp_path / f".{own_name(k)}-1-{k}.tmp" for k in range(4)]
    for path, text in zip(left, (b"", b"early", b"earlybird-cache 3\nmachine", b""), strict=True):
        path.write_bytes(text)
    for path in left[:3]:
        os.utime(path, (old, old))
    assert write(native, tmp_path, own_name(9), b"earlybird-cache 3\n", max_files=4) is None
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {left[3].name, *(own_name(k) for k in (3, 4, 5, 9))}


def test_files_of_other_programs_are_neither_counted_nor_removed(native, tmp_path):
    own, mark = own_name(7), b"earlybird-cache 3\n"
    others = {
        "x.cache": mark,
        "0.cache": mark,
        ".x.tmp": mark,
        f".{own}.tmp": mark,
        f".{own}-1.tmp": mark,
        f".{own}-1-x.tmp": mark,
        f".{own}-1-2.tmp": b"another program's",
        f"{own}.cache": mark,
        own.upper(): mark,
        own.replace("-0", "-g"): mark,
        own: b"another program's",
        own_name(8): b"",
        "notes.txt": mark,
    }
    for name, text in others.items():
        (tmp_path / name).write_bytes(text)
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / own_name(6)).symlink_to(tmp_path / "notes.txt")
    (tmp_path / own_name(5)).mkdir()
    os.mkfifo(tmp_path / own_name(4))
    stay = {path.name for path in tmp_path.iterdir()}
    assert write(native, tmp_path, own_name(1), mark, max_files=2) is None
    assert write(native, tmp_path, own_name(2), mark, max_files=2) is None
    assert {path.name for path in tmp_path.iterdir()} == {*stay, own_name(1), own_name(2)}
    keep_path = ctypes.CFUNCTYPE(None, c_char_p)(lambda path: None)
    assert native.eb_store_remove(os.fsencode(tmp_path), b"x", keep_path)
    assert native.eb_store_remove(os.fsencode(tmp_path), b"mpi-1.0-0000000000000001-", keep_path)
    assert {path.name for path in tmp_path.iterdir()} == {*stay, own_name(2)}


def test_many_writers_at_once_leave_one_whole_file(native, tmp_path):
    texts = {bytes([65 + k]) * 40000 for k in range(8)}
    seen, stopped = set(), threading.Event()

    def keep_reading():
        while not stopped.is_set():
            seen.add(read(native, tmp_path))

    def keep_writing(text):
        for _ in range(20):
            assert write(native, tmp_path, text=text) is None

    reader = threading.Thread(target=keep_reading)
    writers = [threading.Thread(target=keep_writing, args=(text,)) for text in texts]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stopped.set()
    reader.join()
    assert seen <= texts | {None}
    assert [path.name for path in tmp_path.iterdir()] == ["a.cache"]


def test_a_name_says_which_mpi_and_machine(native):
    def prefix_of(mpi):
        text = ctypes.create_string_buffer(128)
        native.eb_identity_prefix(mpi, text)
        return text.value.decode()

    name = prefix_of(b"MPICH Version:      5.0.2\nMPICH Release date: x")
    assert re.fullmatch(r"mpich-version-5.0.2-mpic-[0-9a-f]{16}-", name), name
    assert prefix_of(b"MPICH Version:      5.0.2\nMPICH Release date: y") != name


def test_what_a_launcher_says_of_the_job_is_no_setting(native, monkeypatch):
    def identity():
        described = Identity()
        native.eb_identity_of(byref(Run(b"MPI 1", False, False, False, 1, 0, b"cache")), byref(described))
        return described.text, described.name

    before = identity()
    assert re.fullmatch(r"mpi-1-[0-9a-f]{16}-[0-9a-f]{16}\.cache", before[1].decode())
    for name in (
        "MPIR_CVAR_CH3_INTERFACE_HOSTNAME",
        "MPIR_PARAM_CH3_INTERFACE_HOSTNAME",
        "MPICH_INTERFACE_HOSTNAME",
        "MPICH_INTERFACE_HOSTNAME_R3",
        "MV2_COMM_WORLD_SIZE",
        "MVP_COMM_WORLD_LOCAL_RANK",
    ):
        for host in ("node1", "node2"):
            monkeypatch.setenv(name, host)
            assert identity() == before, name
    monkeypatch.setenv("MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE", "1")
    assert identity() != before


def test_costs_of_a_pair_that_shares_a_cache_are_not_those_of_another(native):
    def identity(shared):
        described = Identity()
        native.eb_identity_of(byref(Run(b"MPI 1", False, False, False, 1, 0, shared)), byref(described))
        return described.text, described.name

    for ours, others in zip(identity(b"cache"), identity(b"sockets"), strict=True):
        assert ours != others


@pytest.fixture
def cores(tmp_path):
    """The kernel's files on eight cores: two threads each, four with a cache, two caches in a socket and a
    socket of four."""
    for k in range(12):
        lists = {
            "topology/thread_siblings_list": f"{k - k % 2}-{k - k % 2 + 1}",
            "cache/index3/shared_cpu_list": f"{k - k % 4}-{k - k % 4 + 3}",
            "topology/core_siblings_list": "0-3,4-7" if k < 8 else "8-11",
        }
        for name, text in lists.items():
            path = tmp_path / f"cpu{k}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("own", "others", "shared"),
    [
        ([0], [1], "core"),
        ([0], [2], "cache"),
        ([0, 1, 2, 3], [0, 1, 2, 3], "cache"),
        ([3], [4], "socket"),
        (range(8), range(8), "socket"),
        ([7], [8], "sockets"),
        (range(8), [8, 9], "sockets"),
        (range(12), range(12), "any"),
        ([0, 11], [1], "any"),
        ([20], [21], "unknown"),
    ],
)
def test_which_part_of_the_machine_a_pair_shares(native, cores, own, others, shared):
    def of(numbers):
        return ctypes.create_string_buffer(sum(1 << k for k in numbers).to_bytes(128, sys.byteorder))

    assert native.eb_placement_shared(os.fsencode(cores), of(own), of(others)).decode() == shared


# ---- Whole runs ----

CASE = "pready_out_of_order_delivers_every_partition"
MEASURING_S = 45


@pytest.fixture
def launch(tmp_path):
    """launch(mpi, **variables): the output of two ranks with a cache of their own, and its folder.

    With measures=True it is launched again until it has measured costs. Where other processes take the
    cores, a message takes as long as they run, too few sizes are measured in the time, and nothing is kept.
    The test skips where that stays so.
    """

    def run(mpi, *, program=None, cases=(CASE,), measures=False, prefix=(), **variables):
        flavour = find_flavour(mpi)
        env = {"EARLYBIRD_CACHE": str(tmp_path / "cache"), "EARLYBIRD_STATS": "1"} | variables
        preload = ["env", f"LD_PRELOAD={library_path(flavour)}"] if program else []
        command = [*prefix, *preload, program or suite_program(flavour), *cases]
        end = time.monotonic() + MEASURING_S
        while True:
            status, output = run_ranks(flavour, 2, command, env, 60)
            assert status == 0, output[-2000:]
            if not measures or "within nodes measured in this run" in output:
                return output, tmp_path / "cache"
            if time.monotonic() > end:
                is_busy = os.getloadavg()[0] > len(os.sched_getaffinity(0))
                assert is_busy, f"no costs in {MEASURING_S} s; the last output: {output[-2000:]}"
                pytest.skip(f"other processes took the cores for {MEASURING_S} s")
            time.sleep(0.5)

    return run


@contextmanager
def read_only(folder):
    """Yield how a command begins that cannot write the folder; skips where root cannot arrange this."""
    if os.geteuid() == 0:
        script = f'mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && exec "$@"'
        prefix = ["unshare", "-m", "sh", "-c", script, "sh"]
        if subprocess.run([*prefix, "true"], capture_output=True, timeout=60).returncode != 0:
            pytest.skip("root may write every folder here")
        yield prefix
        return
    folder.chmod(0o555)
    yield []
    folder.chmod(0o755)


def costs_in(output):
    """The numbers of the costs in use."""
    text = re.search(r'EARLYBIRD_COSTS="([^"]+)"', output)[1]
    return [float(number) for number in re.findall(r"-?[0-9][-+0-9.e]*", text)]


@pytest.mark.mpi
def test_the_second_run_uses_what_the_first_has_measured_until_it_is_forgotten(mpi, launch, earlybird):
    # Costs of messages alone: what one run could not measure, the next one does.
    by_message = {"EARLYBIRD_NODE_PATH": "off"}
    first, folder = launch(mpi, measures=True, **by_message)
    (file,) = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    begun = file.stat()
    second, _ = launch(mpi, **by_message)
    assert "within nodes kept by an earlier run" in second
    # Kept with six digits, printed with three: the last one may differ.
    assert costs_in(second) == pytest.approx(costs_in(first), rel=0.01, abs=1e-30)
    # Nothing was found, so nothing is written.
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (begun.st_ino, begun.st_mtime_ns)
    result = earlybird("exec", "--mpi", mpi, "--forget", env={"EARLYBIRD_CACHE": str(folder)})
    assert result.stdout == f"removed {file}\n" and result.stderr == ""


@pytest.mark.mpi
def test_other_settings_have_other_costs(any_mpi, launch):
    launch(any_mpi, measures=True)
    _, folder = launch(any_mpi, measures=True, FI_SOMETHING="1")
    assert len(list(folder.iterdir())) == 2


@pytest.mark.mpi
def test_only_what_is_sound_and_of_this_machine_is_used(any_mpi, launch):
    _, folder = launch(any_mpi, measures=True)
    (file,) = folder.iterdir()
    text = file.read_bytes()
    others = {
        "damaged": text.replace(b"0:", b"0;", 1),
        "of another machine": with_hash(
            re.sub(rb"machine .*", b"machine another", text).rpartition(b"end ")[0]
        ),
    }  # fmt: skip
    for other in others.values():
        file.write_bytes(other)
        launch(any_mpi, measures=True)
        assert file.read_bytes().startswith(b"earlybird-cache 3\n")
    output, _ = launch(any_mpi)
    assert "within nodes kept by an earlier run" in output


def segments_of_sender(output):
    return int(re.search(r"^ +0 +sends +\d+ +\d+ +\d+ +(\d+)", output, re.MULTILINE)[1])


@pytest.mark.mpi
def test_what_an_earlier_run_has_found_is_used_from_the_first_starts_on(any_mpi, launch, compiled):
    """A result for partitions that become ready at once; one that no search would choose."""
    program = compiled(find_flavour(any_mpi), "starts")
    arguments = (str(1 << 18), "32", "12")
    by_message = {"EARLYBIRD_NODE_PATH": "off"}
    before, folder = launch(any_mpi, program=program, cases=arguments, measures=True, **by_message)
    (file,) = folder.iterdir()
    lines = file.read_bytes().rpartition(b"end ")[0]
    ends = b",".join(b"%d" % (k << 13) for k in range(1, 33))
    # A machine that is busy takes longer from the first partition to the last one.
    for first_us in (0, 1, 2, 3, 4, 5, 7, 9, 12, 16, 21, 28, 37, 49, 65, 87, 116, 155, 200, 270, 360, 480):
        values = b"bytes=262144 partitions=32 first_s=%de-6 half_s=%de-6" % (first_us, first_us / 2)
        kept = (values, time.time(), ends)
        lines += b"result intra_node %b won_s=1e-6 found=%d paths=1 path=message ends=%b\n" % kept
    end = time.monotonic() + MEASURING_S
    while True:
        file.write_bytes(with_hash(lines))
        after, _ = launch(any_mpi, program=program, cases=arguments, **by_message)
        # A sender that loses its core between two partitions is like none of the results.
        if segments_of_sender(after) >= 9 * 32 or time.monotonic() > end:
            break
    assert segments_of_sender(after) >= 9 * 32 > segments_of_sender(before)
    assert b"ends=" + ends in file.read_bytes()


@pytest.mark.mpi
def test_nothing_is_kept_where_it_is_off_not_possible_or_not_used(any_mpi, launch, tmp_path):
    output, folder = launch(any_mpi, EARLYBIRD_CACHE="off")
    assert "was not kept" not in output
    launch(any_mpi, EARLYBIRD_COSTS="intra_node_protocols=0:1e-6:1e-7:1e9")
    launch(any_mpi, cases=("--list",))
    assert not folder.exists()
    (tmp_path / "file").touch()
    output, _ = launch(any_mpi, EARLYBIRD_CACHE=str(tmp_path / "file"), measures=True)
    assert output.count("was not kept in") == 1 and "Not a directory" in output
    output, _ = launch(any_mpi, EARLYBIRD_CACHE=str(tmp_path / "file"), EARLYBIRD_STATS="0")
    assert "was not kept" not in output


@pytest.mark.mpi
def test_costs_in_a_folder_that_this_user_cannot_write_are_used_however_old(any_mpi, launch):
    # By one path: with several, a run of some starts may find something new, and says that it cannot keep it.
    by_message = {"EARLYBIRD_NODE_PATH": "off"}
    _, folder = launch(any_mpi, measures=True, **by_message)
    (file,) = folder.iterdir()
    lines = re.sub(rb"(measured|tried)=[0-9]+", rb"\1=1000000000", file.read_bytes().rpartition(b"end ")[0])
    file.write_bytes(with_hash(lines))
    with read_only(folder) as prefix:
        output, _ = launch(any_mpi, prefix=prefix, **by_message)
    assert "within nodes kept by an earlier run" in output and "was not kept" not in output
    launch(any_mpi, measures=True, **by_message)


SLOW_MESSAGES = "intra_node_protocols=0:1e-3:1e-3:1e9"
QUICK_RING = "node_ring_protocols=0:1e-7:1e-8:1e10"


def starts_by_ring(output):
    row = re.search(r"^ +ring +\d+ +(\d+)", output, re.MULTILINE)
    return int(row[1]) if row else 0


@pytest.mark.mpi
def test_starts_travel_on_the_path_that_is_known_to_be_quicker(mpi, launch, compiled):
    """From start 3 to 8 at least: then what they took decides."""
    program = compiled(find_flavour(mpi), "starts")
    costs = f"{SLOW_MESSAGES} {QUICK_RING}"
    output, _ = launch(mpi, program=program, cases=(str(1 << 16), "4", "40"), EARLYBIRD_COSTS=costs)
    assert 6 <= starts_by_ring(output) <= 38


@pytest.mark.mpi
@pytest.mark.parametrize(
    "variables",
    [
        {"EARLYBIRD_COSTS": f"{SLOW_MESSAGES} {QUICK_RING}", "EARLYBIRD_NODE_PATH": "off"},
        {"EARLYBIRD_COSTS": f"{SLOW_MESSAGES} {QUICK_RING}", "EARLYBIRD_PAIR_BYTES": "65536"},
        {"EARLYBIRD_COSTS": SLOW_MESSAGES},
        {"EARLYBIRD_COSTS": f"{SLOW_MESSAGES} {SLOW_MESSAGES.replace('intra_node', 'node_ring')}"},
    ],
    ids=["off", "no room", "unknown", "as slow"],
)
def test_a_path_that_is_not_there_or_not_quicker_is_not_used(any_mpi, launch, compiled, variables):
    program = compiled(find_flavour(any_mpi), "starts")
    output, _ = launch(any_mpi, program=program, cases=(str(1 << 16), "1", "40"), **variables)
    assert starts_by_ring(output) == 0


@pytest.mark.mpi
def test_a_kept_result_says_the_path(any_mpi, launch, compiled):
    program = compiled(find_flavour(any_mpi), "starts")
    arguments = (str(1 << 16), "1", "12")
    _, folder = launch(any_mpi, program=program, cases=arguments, measures=True)
    (file,) = folder.iterdir()
    for _ in range(
        20
    ):  # where other processes take the cores, one path may be measured in a run, and the other not
        lines = file.read_bytes().rpartition(b"end ")[0]
        if b"\ncosts node_ring " in lines:
            break
        launch(any_mpi, program=program, cases=arguments)
    else:
        pytest.skip("other processes took the cores")
    values = b"bytes=65536 partitions=1 first_s=0 half_s=0 won_s=1e-6 found=%d" % time.time()
    for path, least, most in ((b"ring", 9, 10), (b"message", 0, 0)):
        kept = b"result intra_node %b paths=7 path=%b ends=65536\n" % (values, path)
        kept_lines = re.sub(rb"result .*\n", b"", lines) + kept
        file.write_bytes(with_hash(kept_lines))
        output, _ = launch(any_mpi, program=program, cases=arguments)
        assert least <= starts_by_ring(output) <= most
        file.write_bytes(with_hash(lines))


@pytest.mark.mpi
def test_forget_removes_nothing_of_other_mpis_and_runs_the_command(any_mpi, launch, earlybird):
    _, folder = launch(any_mpi, measures=True)
    (file,) = folder.iterdir()
    other = folder / f"other-{file.name}"
    other.touch()
    env = {"EARLYBIRD_CACHE": str(folder)}
    earlybird("exec", "--mpi", any_mpi, "--forget", "--", "no-such-command", check=False, env=env)
    assert file.exists()
    result = earlybird("exec", "--mpi", any_mpi, "--forget", "--", "echo", "out", env=env)
    assert result.stdout == "out\n" and f"removed {file}" in result.stderr
    assert list(folder.iterdir()) == [other]
    result = earlybird("exec", "--mpi", any_mpi, "--forget", env=env)
    assert "nothing is kept for this MPI" in result.stdout
    result = earlybird("exec", "--mpi", any_mpi, "--forget", env={"EARLYBIRD_CACHE": "off"})
    assert "nothing is kept" in result.stdout


@pytest.mark.parametrize("options", [(), ("--mpi", "mpich"), ("--",)])
def test_exec_needs_a_command_unless_it_forgets(in_process, refused, options):
    refused(in_process("exec", *options, check=False), "exec has no command", "--forget")


@pytest.mark.mpi
def test_jobs_that_end_at_once_keep_a_whole_file(any_mpi, launch):
    """Each of them writes when it has measured: together, where the machine lets them."""
    outputs = []
    jobs = [threading.Thread(target=lambda: outputs.append(launch(any_mpi))) for _ in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert len(outputs) == 2
    if not any("within nodes measured in this run" in output for output, _ in outputs):
        launch(any_mpi, measures=True)
    output, folder = launch(any_mpi)
    assert "within nodes kept by an earlier run" in output
    assert len(list(folder.iterdir())) == 1


def test_the_cache_of_tests_is_not_the_users():
    assert os.environ["EARLYBIRD_CACHE"] == "off"
    assert Path(os.environ["HOME"]).is_absolute()
