"""What a run and a check say of themselves has the types and ranges of its keys, or is refused by key."""

import json
import shutil
from pathlib import Path

import pytest

from earlybird.data.advice import advice_from_json
from earlybird.data.check import check_from_json
from earlybird.data.comparison import comparison_from_json
from earlybird.data.errors import InputError
from earlybird.data.history import history_from_json
from earlybird.data.prediction import prediction_from_json
from earlybird.data.profile import profile_from_json
from earlybird.data.recording import load_recording
from earlybird.data.run import Run, sample_from_json

GOLDEN = Path(__file__).parents[2] / "recorded" / "golden"


def golden(name):
    return json.loads((GOLDEN / name).read_text())


def changed(value, path, new):
    """`value` with what is at `path` replaced."""
    *parents, last = path
    inner = value
    for key in parents:
        inner = inner[key] if isinstance(inner, list) else inner.setdefault(key, {})
    inner[last] = new
    return value


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(GOLDEN / "run-1", tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("machine",), "n1", "machine is 'n1'"),
        (("machine", "cores"), -2, "machine.cores is -2"),
        (("machine", "cores_per_socket"), 2, "machine.cores_per_socket is 2"),
        (("machine", "memory_bytes"), 1e300, "machine.memory_bytes is 1e+300"),
        (("settings",), [], "settings is []"),
        (("settings", "suites"), "pingpong", "settings.suites is 'pingpong'"),
        (("settings", "threads"), 10**9, "settings.threads is 1000000000"),
        (("settings", "mpi"), 5, "settings.mpi is 5"),
        (("settings", "launcher"), None, "settings.launcher is None"),
        (("settings", "effort"), 5, "settings.effort is 5"),
        (("settings", "effort", "launches"), 10**8, "settings.effort.launches is 100000000"),
        (("settings", "effort", "budget_s"), -1, "settings.effort.budget_s is -1"),
        (("settings", "suites"), [], "settings.suites is []; give a JSON list of length >= 1"),
        (("settings", "effort", "min_iterations"), 10**15, "settings.effort.min_iterations is 10000000000"),
        (("settings", "effort", "target"), 0, "settings.effort.target is 0; give a number > 0"),
        (("settings", "effort", "seed"), "one", "settings.effort.seed is 'one'"),
        (("command",), "measure", "command is 'measure'"),
        (("id",), 7, "id is 7"),
        (("started",), "0001-01-01T00:00:00+14:00", "is no time of the calendar"),
        (("started",), 2026, "started is 2026"),
    ],
)
def test_a_wrong_key_of_run_json_is_refused_by_its_name(folder, path, value, says):
    (folder / "run.json").write_text(json.dumps(changed(golden("run-1/run.json"), path, value)))
    with pytest.raises(InputError) as refused:
        Run.open(folder)
    assert f"run.json: {says}" in str(refused.value) or says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("placement",), [5], "placement[0] is 5"),
        (("placement", 0, "cpus"), "0", "placement[0].cpus is '0'"),
        (("placement", 0, "node"), -1, "placement[0].node is -1"),
        (("environment",), ["A=1"], "environment is ['A=1']"),
        (("clock", "residual_s"), 1e300, "clock.residual_s is 1e+300"),
        (("threads_per_rank",), 0, "threads_per_rank is 0"),
        (("duration_s",), -1, "duration_s is -1"),
        (("node_received_bytes",), [-1], "node_received_bytes[0] is -1"),
    ],
)
def test_a_wrong_key_of_a_launch_is_refused_by_its_name(folder, path, value, says):
    launch = json.loads((folder / "launches.ndjson").read_text().splitlines()[0])
    (folder / "launches.ndjson").write_text(json.dumps(changed(launch, path, value)) + "\n")
    with pytest.raises(InputError, match=r"launches.ndjson line 1: ") as refused:
        Run.open(folder).launches()
    assert says in str(refused.value)


def sample_of(kernel, config, **more):
    value = {"kernel": kernel, "quantity": "q", "launch": "l", "times_s": [1.0, 1.0], "config": config}
    return sample_from_json(value | more)


@pytest.mark.parametrize(
    ("kernel", "key", "value", "says"),
    [
        ("partitioned", "noise", "pink", "noise is 'pink'; give one of none, single, uniform, gaussian"),
        ("comb", "noise", 4, "noise is 4; give text"),
        ("halo3d", "cells", "8x8", "cells is '8x8'; give three numbers from 1 up, such as 8x8x4"),
        ("halo3d", "cells", "8x8x0", "cells is '8x8x0'"),
        ("sweep3d", "process_grid", "2 x 1 x 1", "process_grid is '2 x 1 x 1'"),
        ("comb", "process_grid", [2, 1, 1], "process_grid is "),
        ("collective", "root", 4, "config.root is 4; give one of 4 ranks"),
        ("collective", "root", -1, "config.root is -1"),
    ],
)
def test_a_value_of_another_form_is_refused(kernel, key, value, says):
    config = {"size_bytes": 8, "operation": "bcast", "ranks": 4}
    with pytest.raises(InputError) as refused:
        sample_of(kernel, config | {key: value})
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("read", "name", "path", "value"),
    [
        (advice_from_json, "advice-1.json", ("asked", "root"), 1e308),
        (advice_from_json, "advice-1.json", ("asked", "ranks"), "four"),
        (advice_from_json, "advice-1.json", ("asked", "size_bytes"), -1),
        (profile_from_json, "profile-1.json", ("some_s",), -(2**63)),
        (comparison_from_json, "comparison-1.json", ("predicted_s", "postal", 0), -0.5),
    ],
)
def test_keys_that_are_free_are_in_their_range_where_they_are_known(read, name, path, value):
    given = changed(golden(name), path, value)
    with pytest.raises(InputError, match=next(name for name in reversed(path) if isinstance(name, str))):
        read(given)


def test_times_of_ranks_are_those_of_the_operation():
    config = {"size_bytes": 8, "operation": "bcast", "ranks": 3}
    with pytest.raises(InputError, match="rank_times_s has 2 columns; give one for each of 3 ranks"):
        sample_of("collective", config, rank_times_s=[[1, 1], [1, 1]])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delayed_ranks", [0.5]),
        ("delayed_ranks", "0"),
        ("sent_bytes", "many"),
        ("sent_bytes", -1),
        ("messages", []),
    ],
)
def test_what_figures_are_made_of_has_its_type(key, value):
    with pytest.raises(InputError, match=key):
        sample_of("halo3d", {}, **{key: value})


def test_other_keys_are_free_and_null_is_as_absent(folder):
    header = golden("run-1/run.json") | {"new": [1, {"a": None}]}
    header["machine"] |= {"cores": None, "colour": "red"}
    (folder / "run.json").write_text(json.dumps(header))
    assert Run.open(folder).header["machine"]["colour"] == "red"


@pytest.mark.parametrize("value", [-1e308, -2, 1e308, 4e9])
def test_times_are_of_this_century(value):
    sample = json.loads((GOLDEN / "run-1" / "samples.ndjson").read_text().splitlines()[0])
    for read, original, path in (
        (sample_from_json, sample, ("times_s", 0)),
        (prediction_from_json, golden("prediction-1.json"), ("inter_node_s", 0)),
        (history_from_json, golden("history-1.json"), ("series", 0, "time_s", 0)),
        (check_from_json, golden("check-1.json"), ("latency_s", 0, 1)),
        (check_from_json, golden("check-1.json"), ("nodes", 0, "compute_s")),
    ):
        name = [key for key in path if isinstance(key, str)][-1]
        with pytest.raises(InputError, match=name):
            read(changed(original, path, value))


def test_facts_of_a_node_have_their_types():
    check = changed(golden("check-1.json"), ("nodes", 0, "facts", "cores"), "two")
    with pytest.raises(InputError, match=r"facts of .*: cores is 'two'; give a number"):
        check_from_json(check)


def test_a_run_of_a_history_was_started_in_the_calendar():
    history = changed(golden("history-1.json"), ("runs", 0, "started"), "9999-12-31T23:59:59-14:00")
    with pytest.raises(InputError, match="no time of the calendar"):
        history_from_json(history)


@pytest.mark.parametrize(
    ("key", "value"), [("command", "app"), ("versions", [1]), ("host", 5), ("started", 2026)]
)
def test_what_is_said_of_a_recording_has_its_types(tmp_path, key, value):
    shutil.copytree(GOLDEN / "recording-1", tmp_path / "rec")
    path = tmp_path / "rec" / "recording.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(InputError, match=f"recording.json: {key} is "):
        load_recording(tmp_path / "rec")


@pytest.mark.parametrize(
    "kernel, missing",
    [
        ("pingpong", "size_bytes"), ("contention", "size_bytes"), ("collective", "operation"),
        ("msgrate", "size_bytes"), ("pipeline", "size_bytes"), ("partitioned", "size_bytes"),
    ],
)  # fmt: skip
def test_a_point_without_a_key_of_its_kernel_is_refused_with_its_line(tmp_path, kernel, missing):
    config = {
        "mpi": "mpich", "level": "intra_socket", "size_bytes": 8, "operation": "bcast", "map_by": "core",
        "ranks": 2, "threads": 2, "window": 4, "partitions": 4, "compute_s": 0.0, "noise": "none",
        "noise_share": 0.0, "cache": "hot", "scaling": "weak", "layout": "1x1x2", "process_grid": "2x1x1",
        "cells": "8x8x8", "variables": 1,
    }  # fmt: skip
    run = Run.create(tmp_path / "run", machine={}, command=[], seed=1)
    value = {"kernel": kernel, "quantity": "q", "launch": "l", "config": config, "times_s": [1.0]}
    with open(run.path / "samples.ndjson", "w", encoding="utf-8") as samples:
        print(json.dumps(value), file=samples)
    assert run.samples()[0].config == config
    del config[missing]
    with open(run.path / "samples.ndjson", "a", encoding="utf-8") as samples:
        print(json.dumps(value | {"kernel": "of another version"}), file=samples)
        print(json.dumps(value), file=samples)
    with pytest.raises(InputError, match=rf"samples.ndjson line 3: config has no '{missing}'; give it"):
        run.samples()


@pytest.mark.parametrize(("key", "value"), [("time_s", -(2**63)), ("speed_up_low", "x"), ("kernel", None)])
def test_results_that_a_profile_keeps_are_checked_when_it_is_read(key, value):
    result = {
        "kernel": "collective",
        "quantity": "completion",
        "config": {},
        "method": "linear",
        "time_s": 1.0,
    }
    profile = json.loads((GOLDEN / "profile-1.json").read_text())
    with pytest.raises(InputError, match="result 0"):
        profile_from_json(profile | {"results": [result | {key: value}]})
