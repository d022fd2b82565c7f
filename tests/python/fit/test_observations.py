"""What enters a fit: one context, validated data, no oversubscribed point where another exists."""

import pytest

from earlybird.data.errors import InputError, WorkError
from earlybird.fit.observations import level_times, pingpong_times, read_runs


def test_the_warm_up_does_not_count(make_run):
    (level,) = level_times(read_runs([make_run("run")]).table)
    assert level.median_s()[0, 0] == pytest.approx(2e-6 + 1024 / 1e10, rel=1e-9)


def test_launches_of_several_runs_are_kept_apart(make_run):
    paths = [make_run("one", launches=2), make_run("two", launches=3)]
    observations = read_runs(paths)
    (level,) = level_times(observations.table)
    assert len(level.time_s) == 5
    assert [set(run) for run in observations.runs] == [{"id", "sha256"}] * 2


@pytest.mark.parametrize(
    ("key", "value"), [("flavour", "openmpi"), ("version", "4.0"), ("transport", "tcp"), ("launcher", "srun")]
)
def test_mixed_launches_are_refused_by_key_and_values(make_run, key, value):
    paths = [make_run("one"), make_run("two", launch={key: value})]
    with pytest.raises(InputError) as error:
        read_runs(paths)
    assert key in str(error.value) and repr(value) in str(error.value)


def test_levels_may_differ_in_transport(make_run):
    path = make_run("run", launches=1)
    make_run("run", launches=1, level="inter_node", launch={"transport": "tcp"})
    assert read_runs([path]).context["transport"] == {"intra_socket": "shm", "inter_node": "tcp"}


@pytest.mark.parametrize(("key", "value"), [("cpu_model", "Other CPU"), ("cores", 2)])
def test_mixed_machines_are_refused_by_key_and_values(make_run, key, value):
    paths = [make_run("one"), make_run("two", machine={key: value})]
    with pytest.raises(InputError) as error:
        read_runs(paths)
    assert key in str(error.value) and repr(value) in str(error.value)


def test_wrong_data_is_refused(make_run):
    with pytest.raises(WorkError, match="wrong data"):
        read_runs([make_run("run", validated=False)])


@pytest.mark.parametrize(
    "what", [{"launches": 0}, {"kernel": "exchange"}, {"kernel": "pingpong", "buffers": "reuse"}]
)
def test_a_run_without_calibration_says_what_to_measure(make_run, what):
    with pytest.raises(InputError, match="earlybird measure pingpong contention"):
        read_runs([make_run("run", **what)])


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a run folder"):
        read_runs([tmp_path])


def test_contention_is_not_mixed_with_ping_pongs(make_run):
    path = make_run("run", ns=(1, 2), launches=2)
    make_run("run", lambda n, size: 1.0, kernel="pingpong", ns=(1,), launches=2)
    table = read_runs([path]).table
    (level,) = level_times(table)
    assert level.n.tolist() == [1, 2] and level.median_s().max() < 1e-3
    assert pingpong_times(table)[0].median_s().min() == 1.0


def test_a_ping_pong_gives_the_single_pair_that_contention_lacks(make_run):
    path = make_run("run", ns=(2, 4), launches=2)
    make_run("run", lambda n, size: 1.0, kernel="pingpong", ns=(1,), launches=2)
    (level,) = level_times(read_runs([path]).table)
    assert level.n.tolist() == [1, 2, 4] and level.median_s()[0].min() == 1.0


def test_oversubscribed_points_give_way_to_others(make_run):
    path = make_run("run", ns=(4,), launches=2)
    make_run("run", lambda n, size: 1.0, ns=(4, 8), launches=2, oversubscribed=lambda n: True)
    (level,) = level_times(read_runs([path]).table)
    assert level.n.tolist() == [4, 8] and level.oversubscribed.tolist() == [False, True]
    assert level.median_s()[0].max() < 1e-3


def test_thresholds_come_from_the_control_variables(make_run):
    variables = {
        "UCX_RNDV_THRESH": 8192,
        "btl_sm_eager_limit": 4096,
        "other": 77,
        "eager_off": 0,
        "BCAST_THRESHOLD": 256,
    }
    observations = read_runs([make_run("run", launch={"control_variables": variables})])
    assert observations.thresholds_bytes == (4096, 8192)
