"""The kernel `partitioned` under mpiexec: moments, noise, caches, and the metrics of known behaviours."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from earlybird.compare.partitioned import partitioned_metrics
from earlybird.data.layout import parse_layout
from earlybird.data.partition_moments import PartitionMoments
from earlybird.launch.launcher import Request, Rules
from earlybird.launch.local import MpiexecLauncher
from earlybird.machine.flavours import find_flavour
from earlybird.models import partitioned_metrics as metrics
from earlybird.toolchain.build import features
from tests.conftest import require_mpi
from tests.partitioned import suite_program

pytestmark = pytest.mark.mpi

TWO = ("single", "many")
SHORT = Rules(budget_s=0.01, min_iterations=6)


def point(size_bytes=4096, partitions=4, threads=1, compute_s=1e-3, noise="none", share=0.0, cache="hot"):
    return {
        "mpi": "here", "level": "intra_socket", "size_bytes": size_bytes, "partitions": partitions,
        "threads": threads, "compute_s": compute_s, "noise": noise, "noise_share": share, "cache": cache,
    }  # fmt: skip


def launch(mpi, tmp_path, points, methods=TWO, preload=False, rules=SHORT, seed=7, environment=None):
    request = Request(
        "0", "partitioned", points, parse_layout("1x1x2"), rules, None, 300, 120, methods, preload,
        points[0]["threads"], seed=seed, environment=environment or {},
    )  # fmt: skip
    return MpiexecLauncher(find_flavour(mpi)).launch(request, tmp_path, lambda *_: None)


def own_methods(mpi):
    return (*TWO, "partitioned") if features(find_flavour(mpi))["has_partitioned"] else TWO


@pytest.mark.parametrize("preload", [False, True], ids=["own", "libearlybird"])
def test_moments_are_in_order_and_give_the_recorded_time(mpi, tmp_path, preload):
    methods = (*TWO, "earlybird") if preload else own_methods(mpi)
    points = [point(21, 7, 3), point(64 << 10, 2, 3), point(1 << 20, 4, 3)]
    launched = launch(mpi, tmp_path, points, methods, preload)
    assert launched.cause is None
    assert [(s.config, s.method) for s in launched.samples] == [(p, m) for p in points for m in methods]
    for sample in launched.samples:
        assert sample.validated and sample.extra["clock"] == "one" and sample.extra["seed"] == 7
        moments = PartitionMoments.of(sample)
        assert (moments.returned_s >= moments.ready_s).all()
        assert (moments.arrived_s > moments.ready_s).all()
        assert (moments.arrived_s <= moments.completed_s[:, np.newaxis]).all()
        if sample.method == "single":
            assert (moments.ready_s >= moments.joined_s[:, np.newaxis]).all()
        else:
            assert (moments.returned_s <= moments.joined_s[:, np.newaxis]).all()
        assert (moments.joined_s >= moments.compute_s.max(axis=1)).all()
        in_flight_s = metrics.union_length_s(moments.ready_s, moments.arrived_s)
        assert sample.steady_times_s() == pytest.approx(
            in_flight_s, abs=2e-9 * sample.config["partitions"] + 1e-9
        )


def test_a_thread_marks_its_partitions_ready_in_equal_parts_of_its_time(any_mpi, tmp_path):
    (_, sample) = launch(any_mpi, tmp_path, [point(compute_s=4e-3)]).samples
    ready_s = PartitionMoments.of(sample).ready_s
    assert (np.diff(ready_s, axis=1, prepend=0) >= 1e-3 - 1e-8).all()


def test_a_partition_that_threads_share_is_ready_when_the_last_of_them_is(any_mpi, tmp_path):
    shared = point(partitions=2, threads=5, compute_s=1e-3, noise="uniform", share=0.5)
    for sample in launch(any_mpi, tmp_path, [shared], own_methods(any_mpi)).samples:
        moments = PartitionMoments.of(sample)
        assert sample.validated
        for partition, threads in ((0, slice(0, 3)), (1, slice(3, 5))):
            last_s = moments.compute_s[:, threads].max(axis=1)
            assert (moments.ready_s[:, partition] >= last_s - 1e-8).all()


def draws_of(any_mpi, tmp_path, noise, share, seed=7):
    launched = launch(
        any_mpi, tmp_path, [point(partitions=4, threads=4, compute_s=1e-4, noise=noise, share=share)],
        rules=Rules(budget_s=0.01, min_iterations=60), seed=seed,
    )  # fmt: skip
    return [np.array(sample.extra["compute_s"]) for sample in launched.samples]


@pytest.mark.parametrize(("noise", "share", "name"), [("uniform", 0.1, "uniform"), ("gaussian", 0.1, "norm")])
def test_draws_have_the_distribution_of_the_noise_model(any_mpi, tmp_path, noise, share, name):
    from scipy import stats  # takes seconds to import

    distribution = getattr(stats, name)(1e-4, 1e-5)
    draws, of_many = draws_of(any_mpi, tmp_path, noise, share)
    assert (draws == of_many).all()  # methods that are compared compute for the same times
    assert stats.kstest(draws[:60].ravel(), distribution.cdf).pvalue > 0.01
    wrong = getattr(stats, name)(1e-4, 2e-5)
    assert stats.kstest(draws[:60].ravel(), wrong.cdf).pvalue < 1e-6
    for thread in range(1, 4):  # of a state of its own
        assert stats.pearsonr(draws[:60, 0], draws[:60, thread]).pvalue > 1e-3


def test_single_noise_delays_one_thread_each_as_often(any_mpi, tmp_path):
    from scipy import stats  # takes seconds to import

    draws, _ = draws_of(any_mpi, tmp_path, "single", 0.1)
    delayed = draws > 1.05e-4
    assert (delayed.sum(axis=1) == 1).all()
    assert draws[delayed] == pytest.approx(1.1e-4) and draws[~delayed] == pytest.approx(1e-4)
    assert stats.chisquare(delayed.sum(axis=0)).pvalue > 1e-3


def test_the_seed_determines_the_draws(any_mpi, tmp_path):
    found = []
    for k, seed in enumerate((3, 3, 4)):
        scratch = tmp_path / str(k)
        scratch.mkdir()
        found.append(draws_of(any_mpi, scratch, "gaussian", 0.1, seed)[0][:60])
    assert (found[0] == found[1]).all() and (found[0] != found[2]).any()


@pytest.mark.measures_time("another program may empty the cache that is hot, or slow the loads from it")
def test_a_cold_cache_is_cold(any_mpi, tmp_path):
    launched = launch(any_mpi, tmp_path, [point(cache="cold"), point(cache="hot")])
    cold, hot = launched.samples[1], launched.samples[3]
    for hot_s, cold_s in zip(cold.extra["line_hot_s"], cold.extra["line_cold_s"], strict=True):
        assert cold_s > 4 * hot_s  # a cache of level 1 against memory
    assert cold.extra["flushed_bytes"] > 1 << 20
    assert "line_cold_s" not in hot.extra


@pytest.mark.measures_time("another program may empty the cache that is hot, or slow the loads from it")
def test_a_cache_is_emptied_on_each_cpu(any_mpi):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU is usable here, and this needs two")
    program = suite_program(find_flavour(any_mpi), "caches_check")
    output = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60).stdout
    hot_s, cold_s = map(float, output.split())
    assert cold_s > 6 * hot_s


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size_bytes": 4097}, "give a size that is a multiple of the partitions"),
        ({"size_bytes": 0}, "give a size that is a multiple of the partitions"),
        ({"noise": "pink"}, "give one of gaussian, none, single, uniform"),
        ({"noise_share": -0.1}, "give 0 or more"),
        ({"cache": "warm"}, "give hot or cold"),
    ],
)
def test_a_wrong_point_is_refused(any_mpi, tmp_path, changes, message):
    launched = launch(any_mpi, tmp_path, [point() | changes])
    assert message in (launched.cause or "") and launched.samples == []


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    require_mpi("mpich")
    flavour = find_flavour("mpich")
    library = tmp_path_factory.mktemp("stand-in") / "stand_in.so"
    source = Path(__file__).parent / "programs" / "stand_in.c"
    subprocess.run(
        [flavour.mpicc, "-O1", "-shared", "-fPIC", source, "-o", library],
        check=True, timeout=60, env=flavour.environment(),
    )  # fmt: skip
    return library


@pytest.fixture
def of_stand_in(stand_in, tmp_path):
    """of_stand_in(behaviour): the sample of its partitioned calls, and that of a single message."""

    def run(behaviour):
        environment = {"LD_PRELOAD": str(stand_in), "STAND_IN": behaviour}
        points = [point(64 << 10, compute_s=8e-3)]
        rules = Rules(budget_s=0.01, min_iterations=20)
        launched = launch("mpich", tmp_path, points, ("single", "partitioned"), False, rules, 7, environment)
        assert launched.cause is None
        return launched.samples

    return run


def test_an_mpi_that_sends_all_at_the_last_pready_has_its_closed_form(of_stand_in):
    """Partitions are ready at c/4, .. c and all arrive together: U = [a_0, b], with J between them."""
    single, sample = of_stand_in("last")
    assert single.validated and sample.validated
    moments = PartitionMoments.of(sample)
    first_s, last_s = moments.ready_s[:, 0], moments.arrived_s.max(axis=1)
    assert sample.steady_times_s() == pytest.approx(last_s - first_s, abs=1e-8)
    assert (moments.arrived_s >= moments.ready_s.max(axis=1)[:, np.newaxis]).all()  # nothing is sent before
    found = partitioned_metrics([sample], [single])
    assert found["delivered_share"] == 0
    shares = (moments.joined_s - first_s) / (last_s - first_s)
    assert found["early_bird_share"] == pytest.approx(np.median(shares), abs=1e-6)
    # From the first partition, at 2 ms, to the end, at 8 ms; less where the first is ready later.
    assert sample.steady_times_s().max() > 6e-3
    assert found["overhead"] > 1


def test_an_mpi_that_sends_each_partition_has_its_closed_form(of_stand_in):
    """A partition arrives before the next one is ready: all but the last arrive before J, and U is the sum of
    their times, without what is between them."""
    single, sample = of_stand_in("each")
    assert single.validated and sample.validated
    moments = PartitionMoments.of(sample)
    assert (moments.arrived_s[:, :-1] <= moments.ready_s[:, 1:]).all()
    assert partitioned_metrics([sample], [single])["delivered_share"] >= 0.75
    used_s = sample.steady_times_s()
    assert used_s == pytest.approx((moments.arrived_s - moments.ready_s).sum(axis=1), abs=1e-8)
    assert (used_s < moments.arrived_s[:, -1] - moments.ready_s[:, 0]).all()
    last_s = moments.arrived_s.max(axis=1) - moments.joined_s
    after_s = metrics.length_after_s(moments.ready_s, moments.arrived_s, moments.joined_s)
    assert after_s == pytest.approx(np.maximum(last_s, 0), abs=1e-8)


def test_an_mpi_that_delivers_a_wrong_bit_is_noticed(of_stand_in):
    single, sample = of_stand_in("wrong")
    assert single.validated and not sample.validated
