"""Intervals of simulated changes: each source by itself, where its size is known, and together."""

import math
from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.profile import Level, Profile, Protocol, Replicate
from earlybird.data.simulated_program import simulated_program_from_json
from earlybird.models.program import Operation
from earlybird.present.subjects.program.simulated import parts_line
from earlybird.record import intervals, simulation
from earlybird.record.conditions import conditions_as_recorded, simulate_run
from earlybird.record.early_collectives import with_early_collectives
from earlybird.record.profile_draws import LAUNCHES, sources_of
from earlybird.record.run_variation import MIN_CALLS, num_pairs, other_run_s, unexplained_deviation_s
from tests.python.models.program_texts import Written
from tests.python.record.test_early_collectives import EARLY, broadcasts
from tests.python.record.test_message_changes import PROFILE, operations_of

ALONE, APART = parse_layout("1x1x1", "core"), parse_layout("2x1x1", "core")


def computing(seconds):
    """One rank that computes before each of its calls."""
    written = Written(range(1))
    for each in seconds:
        written.add(0, "compute", each)
        written.add(0, "wait", [], 0.0)
    return as_simulated(operations_of(written), ALONE)


def messages(size_bytes, num):
    """Rank 0 sends messages to rank 1, which waits for each."""
    written = Written(range(2))
    for _ in range(num):
        message = written.message(size_bytes)
        written.add(0, "compute", 1e-3)
        written.send(0, message)
        written.receive(1, message)
    return as_simulated(operations_of(written), APART)


def as_simulated(operations, layout):
    """The same, recorded as the profile says."""
    run = simulate_run(operations, conditions_as_recorded(operations, PROFILE, layout))[1]
    event = np.arange(len(run.end_s))
    return replace(operations, recorded_s=run.end_of_run_s, recorded_end_s=run.end_s, event=event)


def sum_deviation(operations, num=400):
    sums = [other_run_s(operations, operations.own_s, k).sum() for k in range(num)]
    return np.std(sums), np.mean(sums)


def predicted(operations, change, layout=APART, profile=PROFILE, share=None):
    given = conditions_as_recorded(operations, profile, layout)
    return simulation.predict_program(operations, given, [change], share)


def part(found, source):
    return {part.source: (part.low, part.high) for part in found.interval_parts}.get(source)


@pytest.mark.one_mpi
def test_other_runs_deviate_as_sums_of_independent_calls_do():
    seconds = np.random.default_rng(2).normal(1e-3, 1e-4, 400)
    deviation, mean = sum_deviation(computing(seconds))
    assert deviation == pytest.approx(1e-4 * math.sqrt(400), rel=0.35)  # of 10 to 20 pairs of blocks
    assert mean == pytest.approx(seconds.sum(), rel=0.01)


@pytest.mark.one_mpi
@pytest.mark.parametrize(
    "seconds",
    [
        np.full(100, 1e-3),
        np.tile([1e-3, 5e-3], 200),  # what alternates is in every block
        np.tile([1.0, 9.0], 10),
        np.linspace(1e-3, 2e-3, 400),  # what grows differs little between neighbours
        [1.0, 2.0] * (MIN_CALLS // 2 - 1),  # of so few nothing is known
    ],
)
def test_what_repeats_or_grows_is_no_variation(seconds):
    deviation, mean = sum_deviation(computing(seconds), 40)
    assert deviation <= 0.01 * mean


@pytest.mark.one_mpi
def test_ranks_in_step_have_the_same_other_run():
    written = Written(range(2))
    for k, each in enumerate(np.random.default_rng(2).uniform(1e-3, 2e-3, 100)):
        number = written.collective(0)
        for rank in range(2):
            written.add(rank, "compute", float(each) * (1 + rank) + k * 0)
            written.add(rank, "wait", [written.add(rank, "enter", number, 0.0)], 0.0)
    operations = operations_of(written)
    seconds = other_run_s(operations, operations.own_s, 3)
    mine, other = (seconds[(operations.rank == r) & (operations.operation == 0)] for r in range(2))
    assert other == pytest.approx(2 * mine) and not np.array_equal(seconds, operations.own_s)


@pytest.mark.one_mpi
def test_deviation_of_few_pairs_of_blocks_has_few_degrees_of_freedom():
    few, many = (computing(np.random.default_rng(2).normal(1e-3, 1e-4, num)) for num in (8, 400))
    assert num_pairs(few, few.own_s) == pytest.approx(2, rel=0.01)
    assert num_pairs(many, many.own_s) == pytest.approx(10)
    half = 0.5 * few.own_s  # of two sites that vary as much
    two = replace(many, site=np.repeat([0, 1], len(many.site) // 2), sites=many.sites * 2)
    assert 10 < num_pairs(two, two.own_s) <= 20 and num_pairs(few, half) == pytest.approx(2, rel=0.01)


@pytest.mark.one_mpi
def test_width_of_messages_does_not_depend_on_the_draws(monkeypatch):
    operations = messages(10**6, 40)
    jitter_s = np.random.default_rng(2).normal(0, 5e-4, len(operations.operation)).cumsum()
    operations = replace(operations, recorded_end_s=operations.recorded_end_s + jitter_s)
    faster = simulation.settings_change(["inter_node.bandwidth=2x"])
    twelve = part(predicted(operations, faster), intervals.MESSAGES)
    monkeypatch.setattr(intervals, "DRAWS", ((10**6, 4),))
    assert part(predicted(operations, faster), intervals.MESSAGES) == twelve


@pytest.mark.one_mpi
def test_interval_has_what_two_runs_differ_by():
    seconds = np.random.default_rng(2).normal(1e-3, 2e-4, 400)
    operations = computing(seconds)
    low, high = part(
        predicted(operations, simulation.computing_change(operations, "main", 0.5), ALONE), intervals.RUNS
    )
    relative = 2e-4 * math.sqrt(400) / seconds.sum()
    assert high - 1 == pytest.approx(1 - low, rel=0.1)
    assert 0.5 < (high - 1) / (2.2 * math.sqrt(2) * relative) < 2


@pytest.mark.one_mpi
def test_calls_that_took_longer_for_a_while_are_variation_of_the_messages():
    operations = messages(10**6, 40)
    given = conditions_as_recorded(operations, PROFILE, APART)
    end_s = simulate_run(operations, given)[1].end_s
    assert unexplained_deviation_s(operations, end_s) == (0.0, 10)
    stalled = replace(
        operations, recorded_end_s=end_s + np.where(end_s > 0.5 * operations.recorded_s, 3e-3, 0.0)
    )
    assert unexplained_deviation_s(stalled, end_s) == (pytest.approx(3e-3), 10)
    faster = simulation.settings_change(["inter_node.bandwidth=2x"])
    assert part(predicted(operations, faster), intervals.MESSAGES) is None
    low, high = part(predicted(stalled, faster), intervals.MESSAGES)
    assert high - 1 > 2 * 3e-3 / stalled.recorded_s and low < 1


@pytest.mark.one_mpi
@pytest.mark.parametrize("slower", [1000, 10**9])
def test_jitter_of_computing_is_no_error_of_the_few_messages(slower):
    operations = messages(1, 40)
    jitter_s = np.random.default_rng(2).normal(0, 5e-4, len(operations.operation)).cumsum()
    operations = replace(operations, recorded_end_s=operations.recorded_end_s + jitter_s)
    found = predicted(operations, simulation.settings_change([f"inter_node.latency={slower}x"]))
    assert part(found, intervals.MESSAGES)
    low, high = (end / found.simulated_s for end in found.interval_s)
    assert 0 < low < high < 10  # half of what messages take, times Student's t


@pytest.mark.one_mpi
def test_ends_of_intervals_do_not_overflow():
    one = intervals._part("source", 1e5, 1e5)
    assert 0 < one.low < 1 < one.high < 1e6
    assert np.isfinite(intervals._combined([one] * 10**6)).all()


@pytest.mark.one_mpi
def test_run_that_takes_no_time_has_no_parts():
    operations = computing(np.zeros(20))
    operations = replace(operations, recorded_end_s=np.arange(len(operations.operation)) ** 2 * 1.0)
    given = conditions_as_recorded(operations, PROFILE, ALONE)
    change = simulation.Change("later", lambda given: replace(given, compute_s=given.compute_s + 1e-3))
    found = simulation.simulated_speed_up(operations, given, 0.0, [change])
    assert (found.value, found.low, found.high) == (0.0, 0.0, 0.0)


@pytest.mark.one_mpi
def test_launches_that_differ_where_nothing_was_measured_leave_the_interval_narrow():
    """Two launches of which one has a latency and the other more for each byte, and both the same time."""

    def level(latency_s, rate):
        return Level(
            "inter_node",
            (Protocol(name="eager", min_bytes=0, latency_s=latency_s, bandwidth_bytes_per_s={1: rate}),),
        )

    size, apart_s = 10**6, 1e-4
    rate = size / (size / 1e9 + apart_s)
    fitted = replace(level(apart_s, 1e9), extra={"launches": 2})
    replicates = tuple(Replicate({"inter_node": of}) for of in [fitted, level(0.0, rate)] * 10)
    profile = Profile({"inter_node": fitted}, "p", replicates=replicates)
    operations = messages(size, 10)
    found = predicted(operations, simulation.settings_change(["inter_node.latency=1x"]), profile=profile)
    assert part(found, LAUNCHES) is None or np.allclose(part(found, LAUNCHES), 1, atol=0.02)
    halved = predicted(operations, simulation.computing_change(operations, "main", 0.5), profile=profile)
    low, high = part(halved, LAUNCHES)
    assert 0.7 < low < high < 1.4


def latencies(values_s, launches):
    """A profile of a fit with a latency of 1 ms, and of replicates with others."""

    def level(latency_s):
        protocol = Protocol(name="eager", min_bytes=0, latency_s=latency_s, bandwidth_bytes_per_s={1: 1e9})
        return Level("inter_node", (protocol,), extra={"launches": launches})

    replicates = tuple(Replicate({"inter_node": level(each)}) for each in values_s)
    return Profile({"inter_node": level(1e-3)}, "p", replicates=replicates)


@pytest.mark.one_mpi
def test_a_few_replicates_are_all_that_is_drawn():
    operations = messages(1, 40)
    faster = simulation.computing_change(operations, "main", 0.01)
    few, many = (
        part(predicted(operations, faster, profile=latencies([1.1e-3] * num, 100)), LAUNCHES)
        for num in (3, 20)
    )
    assert few == pytest.approx(many) and few[1] > 1.01


@pytest.mark.one_mpi
def test_students_t_of_few_launches_is_applied_once():
    given = conditions_as_recorded(messages(1, 2), latencies([1e-3] * 20, 5), APART)
    (source,) = sources_of(given, given, 1.0)
    logarithms = np.array([-0.01, 0.01] * 6)
    found = intervals._spread(source, logarithms)
    half = 1.96 * math.sqrt(1 + 1 / 12) * logarithms.std(ddof=1)
    assert math.log(found.high) == pytest.approx(half, rel=1e-4)


@pytest.mark.one_mpi
def test_sources_add_as_squares_and_are_named():
    operations = computing(np.random.default_rng(2).normal(1e-3, 2e-4, 400))
    operations = replace(operations, recorded_s=1.01 * operations.recorded_s)
    change = simulation.computing_change(operations, "main", 0.5)
    found = predicted(operations, change, ALONE)
    parts = found.interval_parts
    assert [of.source for of in parts][:2] == [intervals.RUNS, intervals.AS_RECORDED]
    assert part(found, intervals.AS_RECORDED) == pytest.approx((1 - 0.01 / 1.01, 1 + 0.01 / 1.01))
    low, high = (end / found.simulated_s for end in found.interval_s)
    assert math.log(high) == pytest.approx(math.sqrt(sum(math.log(of.high) ** 2 for of in parts)))
    assert math.log(low) == pytest.approx(-math.sqrt(sum(math.log(of.low) ** 2 for of in parts)))
    assert parts_line(found).startswith("The interval consists of: runs of the program -")
    assert simulated_program_from_json(found.to_json()) == found
    waited = predicted(operations, change, ALONE, share=0.2)
    assert part(waited, "waiting for cores") == (0.8, 1.2)


@pytest.mark.one_mpi
def test_other_algorithms_of_an_early_broadcast_are_in_the_interval():
    operations = with_early_collectives(broadcasts(EARLY), PROFILE, APART)
    assert operations.early_others
    assert any((of.operation == Operation.ENTER).any() for of in operations.early_others)  # the cost remains
    faster = simulation.settings_change(["inter_node.bandwidth=4x"])
    low, high = part(predicted(operations, faster), intervals.EARLY)
    assert low <= 1 < high
    # With the recorded cost, a faster network gains nothing of what the rank did not see.
    assert predicted(operations, faster).interval_s[1] >= high * predicted(operations, faster).simulated_s
    halved = simulation.computing_change(operations, "main", 0.5)
    assert part(predicted(operations, halved), intervals.EARLY) is not None


@pytest.mark.one_mpi
def test_algorithm_with_which_the_changed_run_never_ends_is_left_out(monkeypatch):
    operations = with_early_collectives(broadcasts(EARLY), PROFILE, APART)
    assert all((of.operation == Operation.ENTER).any() for of in operations.early_others[-1:])

    def simulate(of, given):
        if (of.operation == Operation.ENTER).any():
            raise InputError("in the simulation rank 0 waits for ever")
        return simulate_run(of, given)

    faster = simulation.settings_change(["inter_node.bandwidth=4x"])
    monkeypatch.setattr(intervals, "simulate_run", simulate)
    assert predicted(operations, faster).simulated_s > 0


@pytest.mark.one_mpi
def test_waits_that_stand_for_an_early_broadcast_are_no_variation_of_the_messages():
    operations = with_early_collectives(as_simulated(broadcasts(EARLY), APART), PROFILE, APART)
    assert operations.early
    end_s = simulate_run(operations, conditions_as_recorded(operations, PROFILE, APART))[1].end_s
    for rank in range(2):
        of_rank = replace(operations, first=operations.first[rank : rank + 2])
        assert unexplained_deviation_s(of_rank, end_s)[0] < 1e-3 * operations.recorded_s


@pytest.mark.one_mpi
def test_large_programs_have_fewer_draws_and_the_largest_none(monkeypatch):
    operations = computing(np.random.default_rng(2).normal(1e-3, 2e-4, 400))
    change = simulation.computing_change(operations, "main", 0.5)
    monkeypatch.setattr(intervals, "DRAWS", ((10, 12), (2000, 6)))
    assert part(predicted(operations, change, ALONE), intervals.RUNS)
    monkeypatch.setattr(intervals, "DRAWS", ((10, 12),))
    assert part(predicted(operations, change, ALONE), intervals.RUNS) is None
