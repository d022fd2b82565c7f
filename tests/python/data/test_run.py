"""Runs: samples and launches are appended whole, read back as written, and never overwritten."""

import errno
import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earlybird.data import files
from earlybird.data.errors import InputError, WorkError
from earlybird.data.run import Run, Sample, median_of_launches, require_validated, sample_from_json


def new_run(path) -> Run:
    return Run.create(path, machine={"cores": 2}, command=["earlybird", "measure"], seed=1)


def sample(times_s=(1e-6, 2e-6, 3e-6), **changes) -> Sample:
    fields = {
        "kernel": "pingpong",
        "quantity": "time",
        "config": {"mpi": "mpich", "size_bytes": 8},
        "launch": "0",
    }
    return Sample(times_s=np.array(times_s), **(fields | changes))


# Keys that no version knows; those known have a type, those that end in a unit a limit.
UNKNOWN_KEYS = st.text().map("x_{}_of_later".format)


@st.composite
def samples(draw) -> Sample:
    times_s = draw(st.lists(st.floats(0, 1e3), min_size=1, max_size=6))
    num_ranks = draw(st.integers(0, 3))
    return sample(
        times_s,
        config={"size_bytes": 8}
        | draw(st.dictionaries(UNKNOWN_KEYS, st.integers() | st.text() | st.booleans(), max_size=3)),
        launch=draw(st.text()),
        method=draw(st.none() | st.text()),
        warmup=draw(st.integers(0, len(times_s) - 1)),
        batch=draw(st.integers(1, 100)),
        converged=draw(st.booleans()),
        oversubscribed=draw(st.booleans()),
        validated=draw(st.booleans()),
        rounds=draw(st.none() | st.just(np.arange(len(times_s)))),
        rank_times_s=np.ones((len(times_s), num_ranks)) if num_ranks else None,
        extra=draw(st.dictionaries(UNKNOWN_KEYS, st.integers(), max_size=2)),
    )


@given(written=st.lists(samples(), max_size=3))
def test_appended_samples_read_back(tmp_path_factory, written):
    run = new_run(tmp_path_factory.mktemp("runs") / "run")
    run.append_samples(written)
    again = Run.open(run.path).samples()
    assert [one.to_json() for one in again] == [one.to_json() for one in written]


def test_line_separators_inside_text_end_no_line(tmp_path):
    run = new_run(tmp_path / "run")
    line = json.dumps(sample(config={"mpi": "a\u2028b\x85c", "size_bytes": 8}).to_json(), ensure_ascii=False)
    files.append_lines(run.path / "samples.ndjson", [line])
    assert run.samples()[0].config == {"mpi": "a\u2028b\x85c", "size_bytes": 8}


def test_existing_folder_is_refused_and_left_alone(tmp_path):
    run = new_run(tmp_path / "run")
    run.append_launch({"launch": "0"})
    before = (run.path / "run.json").read_bytes()
    with pytest.raises(InputError, match=r"exists already; choose another name$"):
        new_run(run.path)
    assert (run.path / "run.json").read_bytes() == before
    assert run.launches() == [{"launch": "0"}]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="exists already"):
        new_run(tmp_path / "empty")


def test_full_disk_leaves_no_folder_in_the_method(tmp_path, monkeypatch):
    def disk_is_full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", disk_is_full)
    with pytest.raises(WorkError) as full:
        new_run(tmp_path / "run")
    named = tmp_path / "run" / "run.json"
    assert str(full.value) == f"cannot write {named}: no space left on device; free some space and try again"
    monkeypatch.undo()
    assert new_run(tmp_path / "run").samples() == []


def test_kill_within_a_line_loses_that_line_alone(tmp_path):
    run = new_run(tmp_path / "run")
    run.append_samples([sample(launch="0"), sample(launch="1")])
    path = run.path / "samples.ndjson"
    path.write_bytes(path.read_bytes()[:-7])
    assert [one.launch for one in run.samples()] == ["0"]
    run.cut_unterminated_lines()
    run.append_samples([sample(launch="2")])
    assert [one.launch for one in run.samples()] == ["0", "2"]


def test_digest_follows_the_samples(tmp_path):
    run = new_run(tmp_path / "run")
    empty = run.sha256()
    run.append_samples([sample()])
    assert run.sha256() != empty
    assert Run.open(run.path).sha256() == run.sha256()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("run.json", '{"schema": "earlybird.run/2", "id": "a"}', "'earlybird.run/2'"),
        ("run.json", '{"schema": "earlybird.run/1"}', "no id"),
        ("run.json", "not JSON", "not JSON"),
        ("samples.ndjson", "{}\n", r"samples.ndjson line 1 has no 'kernel'"),
        ("samples.ndjson", "\n", r"samples.ndjson line 1 is not JSON"),
        ("samples.ndjson", "[1]\n", r"samples.ndjson line 1 is not a JSON object"),
        ("launches.ndjson", '{"launch": "0"}\n3\n', r"launches.ndjson line 2 is not a JSON object"),
    ],
)
def test_damaged_run_is_refused_by_file_and_line(tmp_path, name, text, says):
    run = new_run(tmp_path / "run")
    (run.path / name).write_text(text)
    with pytest.raises(InputError, match=says):
        opened = Run.open(run.path)
        opened.samples()
        opened.launches()


def test_folder_without_run_json_is_no_run(tmp_path):
    with pytest.raises(InputError, match="not a run folder"):
        Run.open(tmp_path)
    with pytest.raises(InputError, match="there is no"):
        Run.open(tmp_path / "none")


@pytest.mark.parametrize(
    "change",
    [
        {"times_s": []},
        {"times_s": [1e-6, float("nan")]},
        {"times_s": "fast"},
        {"warmup": 3},
        {"warmup": -1},
        {"config": {"sizes": [1, 2]}},
        {"config": None},
        {"rank_times_s": [[1.0]]},
        {"rank_times_s": [[1.0], [None], [1.0]]},
        {"rounds": [0]},
        {"rounds": [10**30, 0, 1]},
    ],
)
def test_impossible_sample_is_refused(change):
    with pytest.raises(InputError, match="the sample"):
        sample_from_json(sample().to_json() | change)


def test_warmup_is_kept_and_not_used():
    with_warmup = sample([9.0, 1.0, 2.0, 3.0], warmup=1)
    assert with_warmup.to_json()["times_s"][0] == 9.0
    assert with_warmup.median_s() == 2.0


def test_points_differ_by_config_and_method_but_not_by_launch():
    assert sample(launch="0").point() == sample(launch="1").point()
    assert sample(method="a").point() != sample(method="b").point()
    assert sample(config={"mpi": "openmpi"}).point() != sample().point()


def test_median_of_launches_weighs_every_launch_the_same():
    assert median_of_launches([sample([1.0] * 9), sample([2.0]), sample([4.0])]) == 2.0
    assert np.isnan(median_of_launches([]))


def test_wrong_data_is_work_that_failed():
    require_validated([sample()])
    with pytest.raises(WorkError, match="pingpong mpi=mpich size_bytes=8"):
        require_validated([sample(), sample(validated=False)])


@pytest.mark.parametrize(
    ("key", "value"), [("size_bytes", "8"), ("size_bytes", 2**64), ("ranks", -1), ("level", 3)]
)
def test_a_point_whose_known_keys_have_other_values_is_refused(key, value):
    given = sample().to_json()
    given["config"][key] = value
    with pytest.raises(InputError, match=rf"config.{key} is {value!r}; give"):
        sample_from_json(given, "line 1")
