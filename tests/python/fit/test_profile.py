"""Known parameters come back from their own times, with intervals that cover them and warnings where due."""

import json

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.profile import load_profile, save_profile
from earlybird.fit.observations import read_runs, read_table
from earlybird.fit.profile import compare_segmentations, fit_profile
from tests.reference import needs_reference, reference

BLUE_WATERS = "blue_waters_pingpong.csv"

BANDWIDTH = {1: 1.0e10, 2: 1.6e10, 4: 2.0e10, 8: 1.8e10}  # falls at the end, as real tables may
EAGER_BANDWIDTH = {n: rate / 4 for n, rate in BANDWIDTH.items()}
SIZES = tuple(2**k for k in range(6, 24))


def staircase_times(n, size):
    if size < 8192:
        return 1e-6 + n * size / EAGER_BANDWIDTH[n]
    return 4e-6 + n * size / BANDWIDTH[n]


def fitted(path, **options):
    return fit_profile(read_runs([path]), **options)


@pytest.mark.parametrize("paper", [False, True])
def test_exact_times_give_the_parameters_back(make_run, paper):
    profile = fitted(make_run("run", staircase_times, ns=(1, 2, 4, 8), sizes=SIZES), paper=paper)
    eager, rendezvous = profile.levels["intra_socket"].protocols
    assert (eager.name, eager.min_bytes, eager.sender_waits) == ("eager", 0, False)
    assert (rendezvous.name, rendezvous.min_bytes, rendezvous.sender_waits) == ("rendezvous", 8192, True)
    assert [eager.latency_s, rendezvous.latency_s] == pytest.approx([1e-6, 4e-6], rel=1e-6)
    assert rendezvous.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=1e-6)
    assert eager.bandwidth_bytes_per_s == pytest.approx(EAGER_BANDWIDTH, rel=1e-6)
    assert profile.levels["intra_socket"].extra["held_out_error"] < 1e-6


def test_noisy_times_give_the_parameters_back_within_their_noise(make_run):
    profile = fitted(make_run("run", staircase_times, ns=(1, 2, 4, 8), sizes=SIZES, launches=8, noise=0.05))
    eager, rendezvous = profile.levels["intra_socket"].protocols
    assert rendezvous.min_bytes == 8192
    assert [eager.latency_s, rendezvous.latency_s] == pytest.approx([1e-6, 4e-6], rel=0.05)
    assert rendezvous.bandwidth_bytes_per_s == pytest.approx(BANDWIDTH, rel=0.03)


def test_intervals_cover_the_truth_about_as_often_as_they_say(make_run):
    covered = total = 0
    for seed in range(6):
        # The launch is the random factor: all its times share one error.
        path = make_run(f"run{seed}", launches=0)
        for launch in np.random.default_rng(seed).normal(1, 0.05, 12):
            make_run(
                path.name,
                lambda n, size, f=launch: f * (2e-6 + n * size / BANDWIDTH[n]),
                launches=1,
                sizes=SIZES,
            )
        bounds = fitted(path).intervals["intra_socket"]["rendezvous"]["bandwidth_bytes_per_s"]
        covered += sum(low <= BANDWIDTH[int(n)] <= high for n, (low, high) in bounds.items())
        total += len(bounds)
    assert total == 18 and covered >= 12


def test_the_same_data_give_the_same_profile(make_run):
    path = make_run("run", noise=0.1)
    assert fitted(path).to_json() == fitted(path).to_json()
    assert fitted(path, paper=True).id != fitted(path).id


def test_the_profile_survives_its_file(make_run, tmp_path):
    profile = fitted(make_run("run", staircase_times, ns=(1, 2, 4, 8), sizes=SIZES, noise=0.02))
    save_profile(profile, tmp_path / "profile.json")
    assert load_profile(tmp_path / "profile.json").to_json() == json.loads(json.dumps(profile.to_json()))
    assert (
        profile.runs[0]["sha256"] and profile.machine["cores"] == 8 and profile.context["flavour"] == "mpich"
    )


def test_replicates_are_profiles_that_spread_around_the_fit(make_run):
    profile = fitted(make_run("run", noise=0.1))
    assert 0 < len(profile.replicates) <= 50
    rates = [
        item.levels["intra_socket"].protocols[-1].bandwidth_bytes_per_s[4] for item in profile.replicates
    ]
    low, high = profile.intervals["intra_socket"]["rendezvous"]["bandwidth_bytes_per_s"]["4"]
    assert len(set(rates)) > 1 and low < np.median(rates) < high


def test_one_launch_gives_no_intervals_and_a_warning(make_run):
    profile = fitted(make_run("run", launches=1))
    assert not profile.intervals and not profile.replicates
    assert any("one launch only" in warning for warning in profile.extra["warnings"])


def test_launches_of_different_n_give_no_intervals_and_a_warning_of_that(make_run):
    path = make_run("run", ns=(1, 2), launches=1)
    profile = fitted(make_run(path.name, ns=(1,), launches=1))
    assert not profile.intervals and not profile.replicates
    (warning,) = (text for text in profile.extra["warnings"] if "launches" in text)
    assert "no two launches measured the same set of N, so no intervals" in warning
    # The launch with both N is repeated: of N = 1 there are three launches, of N = 2 two.
    profile = fitted(make_run(path.name, ns=(1, 2), launches=1))
    assert profile.intervals and profile.replicates
    assert any("some points have 2 launches, so intervals are rough" in w for w in profile.extra["warnings"])


def test_the_latency_is_that_of_two_receivers(make_run):
    latency_s = {1: 1e-6, 2: 3e-6, 4: 9e-6}
    profile = fitted(make_run("run", lambda n, size: latency_s[n] + size / 1e10))
    (protocol,) = profile.levels["intra_socket"].protocols
    assert protocol.latency_s == pytest.approx(3e-6, rel=1e-6) and protocol.extra["latency_n"] == 2


def test_times_that_do_not_grow_with_size_keep_a_finite_bandwidth(make_run):
    profile = fitted(make_run("run", lambda n, size: 1e-6, sizes=(1, 2, 4, 8, 16, 32, 64)))
    (protocol,) = profile.levels["intra_socket"].protocols
    for n, rate in protocol.bandwidth_bytes_per_s.items():
        assert n * 64 / rate == pytest.approx(0.01 * 1e-6, rel=1e-6)
    assert protocol.extra["bounded_n"] == [1, 2, 4]
    assert any("N = 1, 2, 4; the value is a bound" in warning for warning in profile.extra["warnings"])


@pytest.mark.parametrize("latency_1_s", [3e-7, 2e-6])
def test_one_way_bandwidth_is_that_of_its_own_line_for_any_latency_of_two(make_run, latency_1_s):
    latency_s = {1: latency_1_s, 2: 1e-6, 4: 1e-6}
    sizes = tuple(2**k for k in range(4, 13))
    profile = fitted(make_run("run", lambda n, size: latency_s[n] + n * size / BANDWIDTH[n], sizes=sizes))
    (protocol,) = profile.levels["intra_socket"].protocols
    assert protocol.latency_s == pytest.approx(1e-6, rel=1e-6)
    assert protocol.bandwidth_bytes_per_s == pytest.approx({n: BANDWIDTH[n] for n in (1, 2, 4)}, rel=1e-6)
    assert "bounded_n" not in protocol.extra
    assert not any("bound" in warning for warning in profile.extra["warnings"])


def test_a_bandwidth_held_back_by_an_unsuitable_latency_is_called_a_bound(make_run):
    latency_s = {1: 1e-6, 2: 1e-6, 4: 3e-7}
    sizes = tuple(2**k for k in range(4, 13))
    profile = fitted(make_run("run", lambda n, size: latency_s[n] + n * size / BANDWIDTH[n], sizes=sizes))
    (protocol,) = profile.levels["intra_socket"].protocols
    assert BANDWIDTH[4] < protocol.bandwidth_bytes_per_s[4] <= 2 * BANDWIDTH[4] * (1 + 1e-6)
    assert protocol.extra["bounded_n"] == [4]
    assert any("N = 4; the value is a bound" in warning for warning in profile.extra["warnings"])


def test_oversubscribed_n_are_marked_and_do_not_give_the_latency(make_run):
    profile = fitted(make_run("run", oversubscribed=lambda n: n > 1))
    (protocol,) = profile.levels["intra_socket"].protocols
    assert protocol.extra["oversubscribed_n"] == [2, 4] and protocol.extra["latency_n"] == 1
    assert any(
        "N = 2, 4" in warning and "more ranks than cores" in warning for warning in profile.extra["warnings"]
    )


def link_run(make_run, name, time_s, **more):
    link = {"link": {"expected_bytes_per_s": 24e6, "matches": True}}
    return fitted(make_run(name, time_s, level="inter_node", launch=link, **more))


def test_a_bandwidth_above_the_link_is_a_bound_with_its_reason(make_run):
    """One sender's messages of up to 256 B wait in a buffer: their times do not grow as the link's would."""
    rates = {1: 437e6, 2: 20e6, 4: 20e6}
    sizes = tuple(2**k for k in range(3, 20))
    times = lambda n, size: 7e-6 + n * size / rates[n] if size <= 256 else n * (3e-6 + size / 23.5e6)  # noqa: E731
    profile = link_run(make_run, "run", times, sizes=sizes)
    small, large = profile.levels["inter_node"].protocols
    assert small.extra["above_link_n"] == [1] and "above_link_n" not in large.extra
    (warning,) = [w for w in profile.extra["warnings"] if "above the rate of the link" in w]
    for text in (f"the {small.name} protocol at N = 1 (437 MB/s)", "(24 MB/s)", "only their latency counts"):
        assert text in warning
    profile = fitted(make_run("no-link", times, sizes=sizes, level="inter_node"))
    assert "above_link_n" not in profile.levels["inter_node"].protocols[0].extra


@pytest.mark.parametrize(("rate", "full"), [(23.5e6, True), (12e6, False)])
def test_shared_cores_behind_a_full_link_are_not_blamed(make_run, rate, full):
    profile = link_run(
        make_run, "run", lambda n, size: 1e-5 + n * size / rate, oversubscribed=lambda n: n > 1
    )
    (warning,) = [w for w in profile.extra["warnings"] if "more ranks than cores" in w]
    assert ("large messages still fill the link" in warning) == full
    assert warning.endswith("which measures the scheduler too") != full


def test_unconverged_samples_are_counted_in_a_warning(make_run):
    profile = fitted(make_run("run", launches=5, ns=(1, 2), sizes=(64, 128, 256), converged=False))
    assert "the fit uses 30 samples, 30 of them not converged" in profile.extra["warnings"]


def test_one_size_is_refused(make_run):
    with pytest.raises(InputError, match="at least two sizes"):
        fitted(make_run("run", sizes=(1024,)))


def test_a_level_with_one_size_is_left_out_if_there_are_others(make_run):
    path = make_run("run")
    make_run("run", sizes=(1024,), level="inter_node")
    profile = fitted(path)
    assert list(profile.levels) == ["intra_socket"]
    assert any(warning.startswith("inter_node: one message size") for warning in profile.extra["warnings"])


def test_an_n_measured_at_few_sizes_is_left_to_the_others_where_it_is_missing(make_run):
    path = make_run("run", staircase_times, ns=(1, 2), sizes=SIZES)
    make_run("run", staircase_times, ns=(8,), sizes=(1 << 20,))
    eager, rendezvous = fitted(path).levels["intra_socket"].protocols
    assert sorted(eager.bandwidth_bytes_per_s) == [1, 2]
    assert rendezvous.bandwidth_bytes_per_s == pytest.approx({n: BANDWIDTH[n] for n in (1, 2, 8)}, rel=1e-6)


def test_ping_pongs_become_a_piecewise_form(make_run):
    path = make_run("run", staircase_times, ns=(1,), sizes=(0, *SIZES), kernel="pingpong", noise=0.01)
    profile = fitted(path)
    (form,) = profile.forms
    assert form["what"] == {"operation": "pingpong", "level": "intra_socket"}
    assert [item["min_bytes"] for item in form["parameters"]["protocols"]] == [0, 8192]
    assert form["parameters"]["protocols"][1]["bandwidth_bytes_per_s"] == pytest.approx(1e10, rel=0.02)
    assert form["range"] == {"size_bytes": [0, SIZES[-1]]} and form["held_out_error"] < 0.05
    assert list(profile.levels["intra_socket"].protocols[0].bandwidth_bytes_per_s) == [1]


def test_contention_that_misses_a_protocol_of_the_ping_pong_gives_a_warning(make_run):
    path = make_run("run", staircase_times, sizes=tuple(2**k for k in range(14, 23)))
    make_run("run", staircase_times, ns=(1,), sizes=SIZES, kernel="pingpong")
    assert any("smaller messages are extrapolated" in warning for warning in fitted(path).extra["warnings"])


@pytest.mark.parametrize(("single", "warns"), [(5e9, True), (8e9, False)])
def test_a_single_message_that_gets_much_less_than_those_in_a_row_gives_a_warning(make_run, single, warns):
    path = make_run("run", lambda n, size: 1e-6 + n * size / 1e10)
    make_run("run", lambda n, size: 1e-6 + size / single, ns=(1,), kernel="pingpong")
    said = [text for text in fitted(path).extra["warnings"] if "a single message moves 5 GB/s" in text]
    assert bool(said) == warns and all("up to 2.0 times as long" in text for text in said)


def test_a_left_out_n_is_predicted_from_its_neighbours(make_run):
    profile = fitted(make_run("run", lambda n, size: 2e-6 + size / 1e9, ns=(1, 2, 3, 4, 5)))
    assert profile.levels["intra_socket"].extra["held_out_error_n"] < 1e-6
    assert "held_out_error_n" not in fitted(make_run("three")).levels["intra_socket"].extra


def test_the_comparison_marks_what_the_profile_uses(make_run):
    path = make_run("run", staircase_times, ns=(1, 2, 4, 8), sizes=SIZES, noise=0.02)
    choices = compare_segmentations(read_runs([path]))
    assert [choice.segmentation.num_segments for choice in choices] == [1, 2, 3]
    assert [choice.chosen for choice in choices] == [False, True, False]
    assert choices[1].held_out_error < choices[0].held_out_error


@needs_reference(BLUE_WATERS)
def test_blue_waters_switches_and_held_out_errors():
    profile = fit_profile(read_table(reference(BLUE_WATERS)))
    level = profile.levels["inter_node"]
    assert [protocol.extra["begins_between_bytes"] for protocol in level.protocols[1:]] == [
        [512, 1024],
        [8192, 16384],
    ]
    assert sorted(level.protocols[-1].bandwidth_bytes_per_s) == list(range(1, 17))
    for level in profile.levels.values():
        assert level.extra["held_out_error"] <= 0.10 and level.extra["held_out_error_n"] <= 0.10


def test_times_with_reused_buffers_are_kept_and_fit_no_level(make_run):
    def reused_s(n, size):
        return 1e-6 + n * size / 4e10

    runs = [make_run("plain"), make_run("reused", reused_s, ns=(1, 2), sizes=(4096, 65536), buffers="reuse")]
    both, plain = (fit_profile(read_runs(of)) for of in (runs, runs[:1]))
    assert both.levels["intra_socket"].protocols == plain.levels["intra_socket"].protocols
    assert both.levels["intra_socket"].extra["reused_s"] == {
        str(n): {str(size): pytest.approx(reused_s(n, size)) for size in (4096, 65536)} for n in (1, 2)
    }
    assert "reused_s" not in plain.levels["intra_socket"].extra
    assert plain.levels["intra_socket"].extra["launches"] == 5
