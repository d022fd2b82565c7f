"""Whatever a file or an argument contains, its parser returns an object or raises InputError."""

import copy
import io
import json
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from earlybird.data import files, units
from earlybird.data.advice import collectives_advice_from_json, load_advice
from earlybird.data.baseline import load_baseline
from earlybird.data.check import load_check
from earlybird.data.collective_algorithms import parse_method
from earlybird.data.comparison import load_comparison
from earlybird.data.errors import InputError
from earlybird.data.guidelines import load_guidelines
from earlybird.data.history import load_history
from earlybird.data.layout import parse_layout
from earlybird.data.message_costs import costs_of_profile
from earlybird.data.node_counts import node_counts_from_json
from earlybird.data.pattern import load_pattern
from earlybird.data.prediction import load_prediction
from earlybird.data.profile import load_profile
from earlybird.data.recorded_trace import load_trace
from earlybird.data.recording import load_recording
from earlybird.data.run import Run
from earlybird.data.run_comparison import run_comparison_from_json
from earlybird.data.simulated_machine import load_simulated_machine, parse_simulated_machine
from earlybird.data.tables import PINGPONG_HEADER, THUNE_HEADER, load_pingpong_table, load_thune_table
from earlybird.data.tolerance import tolerance_from_json
from earlybird.interop.imb_outputs import read_imb
from earlybird.interop.line_prefixes import bare
from earlybird.interop.monitoring import load_monitoring
from earlybird.interop.osu_outputs import read_osu
from earlybird.interop.reprompi import read_repro
from earlybird.launch.hosts import parse_hosts
from earlybird.launch.srun_arguments import parse_srun_arguments
from earlybird.patterns.actnum import parse_actnum
from earlybird.patterns.graph_files import parse_graph

GOLDEN = Path(__file__).parents[1] / "recorded" / "golden"
MANY = settings(
    max_examples=40, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip


def accepts_or_refuses(parse, *arguments):
    """The object that `parse` returns, or None when it raises InputError. Other errors fail the test."""
    try:
        return parse(*arguments)
    except InputError as error:
        assert str(error).strip() and "\n" not in str(error).strip()
        return None


# Numbers in text -----------------------------------------------------------------------------------------

FRAGMENTS = [
    "", "0", "-1", "1e400", "1e-400", "nan", "inf", "25", "64", "1/0", "2**9999", "**9999", "k", "M",
    "Gi", "B", "GB/s", "gbit", "us/MB", "s", "ms", "GHz", "meter", "/", "*", "**", "(", ")", " ", "\t",
    "9" * 20, "9" * 5000, "4611686018427387904", "2147483647", "\x1d", "\ufeff", "\u2028", "1d3", "-0",
    "x", ":", ",", "=", "µs", "٣", "\x00", "'", '"', "[]", "{}", "lambda: 0", "__import__", "degC", "%",
    "1_000", "own-binomial", "pipeline",
]  # fmt: skip
texts = st.one_of(st.text(max_size=20), st.lists(st.sampled_from(FRAGMENTS), max_size=6).map("".join))
QUANTITIES = [
    units.parse_bytes, units.parse_bandwidth, units.parse_delay_rate, units.parse_frequency,
    units.parse_duration,
]  # fmt: skip


@pytest.mark.parametrize("parse", QUANTITIES, ids=lambda parse: parse.__name__)
@MANY
@given(text=texts)
def test_quantities(parse, text):
    value = accepts_or_refuses(parse, text)
    assert value is None or (np.isfinite(value) and value >= 0)


@pytest.mark.parametrize(
    "parse", [parse_layout, parse_method, parse_srun_arguments], ids=lambda parse: parse.__name__
)
@MANY
@given(text=texts.filter(lambda text: "/" not in text))
@example(text="99999x99999x99999")
@example(text="1x1x9999999999999999999999")
def test_arguments(parse, text):
    accepts_or_refuses(parse, text)


# JSON ----------------------------------------------------------------------------------------------------

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.sampled_from([10**400, 2**63, -1, 0, 1e308, float("nan"), float("inf"), "1", "nan", "x" * 70]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def paths_of(value, path=()):
    """The path of every part of a JSON value, including itself."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths_of(item, (*path, key))


@st.composite
def changed(draw, original):
    """`original` with up to three of its parts replaced or removed."""
    value = copy.deepcopy(original)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(paths_of(value))))
        if not path:
            return draw(values)
        parent = value
        for key in path[:-1]:
            parent = parent[key]
        if draw(st.booleans()):
            parent[path[-1]] = draw(values)
        else:
            del parent[path[-1]]
    return value


def golden(name):
    return json.loads((GOLDEN / name).read_text())


def profile_and_what_is_read_from_it(path):
    profile = load_profile(path)
    for read in (lambda one: one.collectives, lambda one: one.pipelines, costs_of_profile):
        accepts_or_refuses(read, profile)
    return profile


def load_and_print_check(path):
    check = load_check(path)
    return check, check.bad_hosts(), [one.sentence for one in check.findings], check.bandwidth_bytes_per_s()


def load_collectives_advice(path):
    return collectives_advice_from_json(files.read_json(path, "advice"))


def parsed(parse, *options):
    """A function that reads a path and parses its text."""
    return lambda path: parse(files.read_text(path, "mesh"), path, *options)


def of_json(read):
    """A function that reads the JSON object at a path."""
    return lambda path: read(files.read_json(path, "file"))


JSON_FILES = {
    "baseline": (load_baseline, golden("baseline-1.json")),
    "history": (load_history, golden("history-1.json")),
    "node-counts": (of_json(node_counts_from_json), golden("node-counts-1.json")),
    "run-comparison": (of_json(run_comparison_from_json), golden("run-comparison-1.json")),
    "tolerance": (of_json(tolerance_from_json), golden("tolerance-1.json")),
    "advice": (load_advice, golden("advice-1.json")),
    "collectives-advice": (load_collectives_advice, golden("collectives-advice-1.json")),
    "check": (load_and_print_check, golden("check-1.json")),
    "comparison": (load_comparison, golden("comparison-1.json")),
    "guidelines": (load_guidelines, golden("guidelines-1.json")),
    "prediction": (load_prediction, golden("prediction-1.json")),
    "profile": (profile_and_what_is_read_from_it, golden("profile-1.json")),
    "simulated-machine": (load_simulated_machine, golden("simulated-machine-1.json")),
}


@pytest.mark.parametrize("name", JSON_FILES)
@MANY
@given(data=st.data())
def test_json_files(tmp_path, name, data):
    load, original = JSON_FILES[name]
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(data.draw(changed(original))))
    loaded = accepts_or_refuses(load, path)
    if loaded is not None and hasattr(loaded, "to_json"):
        json.dumps(loaded.to_json(), allow_nan=False)


@MANY
@given(text=texts)
@example(text='{"shape": "4x2x16"')
def test_simulated_machines_given_as_text(text):
    accepts_or_refuses(parse_simulated_machine, text)


def everything_of_a_run(path):
    run = Run.open(path)
    return run, run.launches(), run.samples(), run.sha256()


RUN = {name: (GOLDEN / "run-1" / name) for name in ("run.json", "launches.ndjson", "samples.ndjson")}
HEADER = golden("run-1/run.json")
SAMPLES = [json.loads(line) for line in RUN["samples.ndjson"].read_text().splitlines()[:2]]


@MANY
@given(data=st.data())
def test_runs(tmp_path, data):
    sample = data.draw(changed(data.draw(st.sampled_from(SAMPLES))))
    header = data.draw(st.one_of(st.just(HEADER), changed(HEADER)))
    (tmp_path / "run.json").write_text(json.dumps(header))
    (tmp_path / "launches.ndjson").write_text(json.dumps(data.draw(values)) + "\n")
    (tmp_path / "samples.ndjson").write_text(json.dumps(sample) + "\n")
    accepts_or_refuses(lambda: Run.open(tmp_path).launches())
    (tmp_path / "launches.ndjson").write_text("{}\n")
    accepts_or_refuses(everything_of_a_run, tmp_path)


# Any bytes -----------------------------------------------------------------------------------------------


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


MTX = b"%%MatrixMarket matrix coordinate real general\n% a remark\n4 4 2\n1 4 100000\n2 1 200000\n"
SYMMETRIC_MTX = b"%%MatrixMarket matrix array complex hermitian\n2 2\n0 0\n1d1 0\n3 0\n"
THUNE = (",".join(THUNE_HEADER) + "\nOther,intra_socket,1,2,3,4,5,6,7\n").encode()
PINGPONG = (",".join(PINGPONG_HEADER) + "\ninter_node,3,2,0,4e-6\n").encode()
GRAPH_MTX = b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n"
BENCHMARKS = GOLDEN.parent / "benchmarks"


def of_text(read, *more):
    """What reads the text of a benchmark, as a function of its file."""
    return lambda path: read(bare(files.read_text(path, "output")), str(path), *more)


FILES = {
    "osu.txt": (of_text(read_osu, 2), (BENCHMARKS / "osu_allreduce-fz.txt").read_bytes()),
    "imb.txt": (of_text(read_imb), (BENCHMARKS / "imb_PingPong.txt").read_bytes()),
    "repro.txt": (of_text(read_repro), (BENCHMARKS / "repro_window.txt").read_bytes()),
    "repro-processes.txt": (of_text(read_repro), (BENCHMARKS / "repro_window_processes.txt").read_bytes()),
    "pattern.csv": (load_pattern, (GOLDEN / "pattern-1.csv").read_bytes()),
    "pattern.npz": (load_pattern, npz(src=np.array([0, 1]), dst=np.array([1, 0]), bytes=np.array([8, 8]))),
    "pattern.mtx": (load_pattern, MTX),
    "symmetric.mtx": (load_pattern, MTX.replace(b"general", b"symmetric")),
    "graph-array.mtx": (parsed(parse_graph), SYMMETRIC_MTX),
    "layout.csv": (lambda path: parse_layout(str(path)), (GOLDEN / "layout-1.csv").read_bytes()),
    "graph.graph": (parsed(parse_graph), b"% a mesh\n3 2\n2\n1 3\n2\n"),
    "graph.mtx": (parsed(parse_graph), GRAPH_MTX),
    "cells.actnum": (parsed(parse_actnum, (2, 2, 2)), b"ACTNUM\n 3*1 0 4*1 /\n"),
    "deck.grdecl": (
        parsed(parse_actnum, (2, 2, 2)),
        b"SPECGRID\n 2 2 2 1 F /\nBOX\n 1 2 1 2 1 1 /\nACTNUM\n 3*1 0 /\nENDBOX\nPORO\n 8*0.2 /\n"
        b"EQUALS\n 'ACTNUM' 0 1 1 2* 2 2 /\n/\nSKIP\nENDSKIP\nEND\nINCLUDE\n 'none' /\n",
    ),
    "hosts.txt": (
        lambda path: parse_hosts(str(path)),
        b"node1 slots=2 max_slots=4\nme@node2:4\n# and\nnode3 4\nnode4 user=me\n",
    ),
    "ranks.txt": (lambda path: parse_hosts(str(path)), b"rank 0=node1 slot=0\nrank 1=node2 slot=0:0-1\n"),
    "thune.csv": (load_thune_table, THUNE),
    "pingpong.csv": (load_pingpong_table, PINGPONG),
    "app.0.prof": (
        lambda path: load_monitoring([path], internal=True),
        (GOLDEN.parent / "openmpi-monitoring" / "app.0.prof").read_bytes(),
    ),
    "profile.json": (load_profile, (GOLDEN / "profile-1.json").read_bytes()),
}


@st.composite
def damaged(draw, original):
    """`original` with up to three stretches replaced by other bytes, or any bytes at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        end = draw(st.integers(at, min(at + 8, len(data))))
        new = st.one_of(st.binary(max_size=8), st.sampled_from([text.encode() for text in FRAGMENTS]))
        data[at:end] = draw(new)
    return bytes(data)


@pytest.mark.parametrize("name", FILES)
@MANY
@given(data=st.data())
def test_files_of_any_bytes(tmp_path, name, data):
    load, original = FILES[name]
    path = tmp_path / name
    path.write_bytes(data.draw(damaged(original)))
    accepts_or_refuses(load, path)


@pytest.mark.parametrize("name", FILES)
def test_files_as_they_should_be_are_accepted(tmp_path, name):
    load, original = FILES[name]
    (tmp_path / name).write_bytes(original)
    assert accepts_or_refuses(load, tmp_path / name) is not None


# Recordings ----------------------------------------------------------------------------------------------

RECORDED = GOLDEN / "recording-1-trace-2"
_CHUNK = struct.Struct("=IIQII")


def chunks_of(data):
    """(type, payload) of the chunks of a rank's file."""
    at = 0
    while at < len(data):
        _, kind, length, _, _ = _CHUNK.unpack_from(data, at)
        yield kind, data[at + _CHUNK.size : at + _CHUNK.size + length]
        at += _CHUNK.size + length


def file_of(chunks):
    return b"".join(
        _CHUNK.pack(0x43524245, kind, len(payload), zlib.crc32(payload), 0) + payload
        for kind, payload in chunks
    )


OPENED = struct.pack("=QIIdQ", 0x314E45504F4245, 3, 64, 1e-9, 10).ljust(256, b"\1")


@st.composite
def flipped(draw, data):
    """`data` with some bytes replaced, and perhaps cut."""
    mutable = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        mutable[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(mutable[: draw(st.sampled_from([len(data), len(data) // 2, 100, 8]))])


@settings(MANY, max_examples=40)
@given(data=st.data())
def test_files_of_recorded_ranks(tmp_path, data):
    folder = tmp_path / "rec"
    if not folder.exists():
        shutil.copytree(RECORDED, folder)
    chunks = list(chunks_of((RECORDED / "rank-0.ebr").read_bytes()))
    # As of a rank that was killed: its open call is read, too.
    chunks = [(kind, payload) for kind, payload in chunks if b'"kind": "end"' not in payload]
    k = data.draw(st.integers(0, len(chunks) - 1))
    kind, payload = chunks[k]
    if kind == 1:
        payload = json.dumps(data.draw(changed(json.loads(payload)))).encode()
    else:
        payload = data.draw(flipped(payload))
    chunks[k] = (kind, payload)
    (folder / "rank-0.ebr").write_bytes(file_of(chunks))
    (folder / "rank-0.open").write_bytes(data.draw(flipped(OPENED)))
    accepts_or_refuses(load_recording, folder)


@pytest.mark.parametrize("recording", [RECORDED, GOLDEN / "recording-1"], ids=lambda path: path.name)
@settings(MANY, max_examples=40)
@given(data=st.data())
def test_traces(tmp_path, recording, data):
    path = tmp_path / "rank-0.trace"
    path.write_bytes(data.draw(flipped((recording / "rank-0.trace").read_bytes())))
    calls = load_recording(recording).ranks[0].calls
    accepts_or_refuses(load_trace, path, calls, 2)
