"""Synthetic samples have the times, the spread and the form they are asked for."""

import numpy as np
import pytest

from earlybird.data.layout import parse_layout
from earlybird.launch.launcher import Request
from earlybird.launch.synthetic import SyntheticLauncher, completion_times

POINTS = [{"size_bytes": size} for size in (1, 2)]


def launch(launcher, id="0", kernel="pingpong", points=POINTS, layout="1x1x2"):
    return launcher.launch(Request(id, kernel, points, parse_layout(layout)), None, lambda *output: None)


def expected(kernel, point, request):
    return np.full(request.layout.num_ranks if kernel == "exchange" else 1, 1e-6 * point.get("size_bytes", 1))


def test_times_spread_around_what_is_expected():
    launcher = SyntheticLauncher(expected, noise=0.05, launch_noise=0.0, iterations=4000)
    for sample, size in zip(launch(launcher).samples, (1, 2), strict=True):
        assert np.median(sample.times_s) == pytest.approx(1e-6 * size, rel=0.01)
        assert np.std(np.log(sample.times_s)) == pytest.approx(0.05, rel=0.1)


def test_launches_differ_by_a_factor_of_their_own():
    launcher = SyntheticLauncher(expected, noise=1e-9, launch_noise=0.1)
    launches = [launch(launcher, str(k)).samples for k in range(200)]
    factors = np.array([[s.median_s() / (1e-6 * size) for s, size in zip(samples, (1, 2), strict=True)]
                        for samples in launches])  # fmt: skip
    assert np.allclose(factors[:, 0], factors[:, 1], rtol=1e-6)
    assert np.std(np.log(factors[:, 0])) == pytest.approx(0.1, rel=0.2)


def test_the_seed_and_the_launch_decide_what_is_drawn():
    first = launch(SyntheticLauncher(expected, seed=3), "a").samples[0].times_s
    assert np.array_equal(first, launch(SyntheticLauncher(expected, seed=3), "a").samples[0].times_s)
    assert not np.array_equal(first, launch(SyntheticLauncher(expected, seed=4), "a").samples[0].times_s)
    # A resumed run, with a launcher made anew, must not repeat the launches it holds.
    assert not np.array_equal(first, launch(SyntheticLauncher(expected, seed=3), "b").samples[0].times_s)


def test_an_exchange_keeps_every_ranks_time():
    launched = launch(SyntheticLauncher(expected), kernel="exchange", points=[{}], layout="2x1x2")
    (sample,) = launched.samples
    assert sample.rank_times_s.shape == (40, 4)
    assert np.array_equal(sample.times_s, sample.rank_times_s.max(axis=1))
    assert [entry["node"] for entry in launched.record["placement"]] == [0, 0, 1, 1]


def test_a_rank_without_work_still_takes_a_time():
    launched = launch(SyntheticLauncher(lambda *_: np.zeros(2)), kernel="exchange", points=[{}])
    assert (launched.samples[0].rank_times_s > 0).all()


def test_progress_counts_every_point():
    heard = []
    request = Request("0", "pingpong", POINTS, parse_layout("1x1x2"))
    SyntheticLauncher(expected).launch(request, None, lambda count, last: heard.append((count, last.config)))
    assert heard == [(1, POINTS[0]), (2, POINTS[1])]


def test_every_method_of_a_point_has_a_sample_of_its_own_times():
    def by_method(kernel, point, request):
        return np.array([{"single": 2e-3, "many": 1e-3}[point["method"]]])

    point = {"size_bytes": 4000, "partitions": 4, "gamma_s_per_byte": 1e-6}
    request = Request("0", "pipeline", [point], parse_layout("1x1x2"), methods=("single", "many"))
    heard = []
    launched = SyntheticLauncher(by_method).launch(request, None, lambda count, last: heard.append(count))
    assert heard == [1]
    assert [sample.method for sample in launched.samples] == ["single", "many"]
    assert all(sample.config == point for sample in launched.samples)
    for sample, time_s in zip(launched.samples, (2e-3, 1e-3), strict=True):
        assert np.median(sample.times_s) == pytest.approx(time_s, rel=0.1)
        assert sample.rounds.tolist() == list(range(40))
        assert sample.extra["delay_s"] == pytest.approx(1e-3)


def test_a_late_receiver_keeps_waiting_senders_and_no_others():
    for delivery_s in (1e-6, 1.0):
        assert completion_times(delivery_s, True, "prompt").tolist() == [delivery_s, delivery_s]
        send_s, received_s = completion_times(delivery_s, True, "late")
        assert send_s == received_s >= 4 * delivery_s
        for receiver in ("prompt", "late"):
            assert completion_times(delivery_s, False, receiver)[0] < delivery_s / 2


def test_a_completion_keeps_both_ranks_times():
    launcher = SyntheticLauncher(lambda *_: np.array([1e-6, 5e-6]))
    (sample,) = launch(launcher, kernel="completion", points=[{"size_bytes": 8}]).samples
    assert np.median(sample.rank_times_s, axis=0) == pytest.approx([1e-6, 5e-6], rel=0.1)
    assert np.array_equal(sample.times_s, sample.rank_times_s[:, 1])
