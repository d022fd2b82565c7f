"""Guidelines of collectives on synthetic launches: planted violations are found, noise is none."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from earlybird.compare.guidelines import COMPOSITIONS, check_guidelines, claims_of, measured_collectives
from earlybird.compare.sides import Side
from earlybird.data.collective_algorithms import REDUCTIONS
from earlybird.data.errors import InputError
from earlybird.data.guidelines import (
    COMPOSITION,
    HOLDS,
    MONOTONY,
    SPLIT,
    UNDECIDED,
    VIOLATED,
    load_guidelines,
)

OPERATIONS = ("bcast", "reduce", "allreduce", "allgather", "alltoall", "gather", "scatter", "barrier")
SIZES = (64, 256, 1024)
RANKS = 4
# Seconds at which every guideline holds with a margin.
TIMES = {
    "bcast": 2e-6, "reduce": 2e-6, "allreduce": 3e-6, "allgather": 3e-6, "alltoall": 5e-6, "gather": 1.5e-6,
    "scatter": 1.5e-6, "barrier": 1e-6,
}  # fmt: skip


def time_s(operation: str, size: int) -> float:
    return TIMES[operation] * (1 + size / 1000)


def side_of(
    times, *, launches=10, noise=0.02, seed=1, methods=("default",), sizes=SIZES, ranks=RANKS
) -> Side:
    """`times` of (operation, bytes, method), with noise of launches and of iterations."""
    random = np.random.default_rng(seed)
    found = {}
    for operation in OPERATIONS:
        for size in (0,) if operation == "barrier" else sizes:
            for method in methods:
                if (value := times(operation, size, method)) is None:
                    continue
                config = {
                    "operation": operation, "ranks": ranks, "layout": f"1x1x{ranks}", "map_by": "core",
                    "root": 0, "size_bytes": size,
                } | ({"datatype": "double"} if operation in REDUCTIONS else {})  # fmt: skip
                key = ("collective", "completion", method, tuple(sorted(config.items())))
                of_launches = value * np.exp(noise * random.normal(size=(launches, 1)))
                found[key] = list(of_launches * np.exp(noise * random.normal(size=(launches, 30))))
    return Side("run", "mpich", found, {})


def test_ranks_that_shared_cores_are_warned_about():
    side = side_of(lambda operation, size, method: time_s(operation, size))
    shared = replace(side, circumstances={"oversubscribed": "false | true"})
    assert check(side).notes == ()
    (note,) = check(shared).notes
    assert "more ranks than cores" in note


def check(side: Side):
    return check_guidelines(side, level=0.03, min_effect=0.05)


def slow(operation: str, size: int, factor: float):
    def times(one, bytes_, method):
        is_slow = (one, bytes_) == (operation, size) and method == "default"
        return time_s(one, bytes_) * (factor if is_slow else 1)

    return times


def test_guidelines_that_hold_with_a_margin_hold():
    found = check(side_of(lambda *one: time_s(*one[:2])))
    assert found.count(VIOLATED) == 0 and found.unchecked == () and found.notes == ()
    assert found.count(HOLDS) == len(found.checks) > 30
    assert {one.kind for one in found.checks} == {COMPOSITION, MONOTONY, SPLIT}
    compared = {(one.operation, tuple(r.operation for r in one.replacement)) for one in found.checks}
    assert {(operation, tuple(name for name, _ in parts)) for operation, parts in COMPOSITIONS} <= compared


def test_a_slow_operation_violates_every_guideline_that_bounds_it():
    found = check(side_of(slow("allgather", 64, 4.0)))
    violated = [one for one in found.checks if one.outcome == VIOLATED]
    assert {one.text() for one in violated} == {
        "allgather(64 B) <= gather(64 B) + bcast(256 B)",
        "allgather(64 B) <= alltoall(64 B)",
        "allgather(64 B) <= allreduce(256 B)",
        "allgather(64 B) <= allgather(256 B)",
    }
    of_gather = next(one for one in violated if len(one.replacement) == 2)
    expected = 4 * time_s("allgather", 64) / (time_s("gather", 64) + time_s("bcast", 256))
    assert of_gather.ratio.value == pytest.approx(expected, rel=0.03)
    assert of_gather.ratio.low < expected < of_gather.ratio.high
    assert "gather and bcast" in of_gather.remedy


def test_a_call_that_is_slower_than_its_parts_violates_the_split():
    found = check(side_of(slow("bcast", 1024, 20.0)))
    (split,) = [one for one in found.checks if one.outcome == VIOLATED and one.kind == SPLIT]
    assert split.text() == "bcast(1 KiB) <= 4 x bcast(256 B)"
    assert split.bound_s == pytest.approx(4 * time_s("bcast", 256), rel=0.03)


def test_an_algorithm_that_is_faster_than_the_replacement_is_the_remedy():
    found = check(side_of(slow("allgather", 64, 4.0), methods=("default", "ring", "own-linear")))
    violated = [one for one in found.checks if one.outcome == VIOLATED]
    assert violated and all("the algorithm ring" in one.remedy for one in violated)


def test_persistent_operations_and_ours_are_no_remedy():
    found = check(
        side_of(
            slow("allgather", 64, 4.0), methods=("default", "persistent", "persistent-ring", "own-linear")
        )
    )
    violated = [one for one in found.checks if one.outcome == VIOLATED]
    assert violated and all("instead" in one.remedy for one in violated)


def test_an_operation_that_was_only_measured_by_forced_algorithms_is_unchecked():
    side = side_of(lambda one, _, method: None if (one, method) == ("scatter", "default") else 1e-6,
                   methods=("default", "ring"))  # fmt: skip
    assert "bcast <= scatter + allgather (needs scatter)" in check(side).unchecked


def test_noise_is_no_violation():
    """Every call takes equally long: most guidelines hold with equality."""
    sides = [side_of(lambda *one: 1e-6, noise=0.05, seed=seed) for seed in range(8)]
    found = [check(side) for side in sides]
    violated = sum(one.count(VIOLATED) for one in found)
    assert violated <= 0.01 * sum(len(one.checks) for one in found)


def test_few_launches_do_not_decide():
    found = check(side_of(slow("allgather", 64, 4.0), launches=4))
    assert {one.outcome for one in found.checks} == {UNDECIDED}
    assert "too few launches" in found.notes[0]


def test_sizes_that_were_not_measured_are_replaced_by_larger_ones():
    claims = claims_of(measured_collectives(side_of(lambda *one: time_s(*one[:2]), sizes=(64, 1000))))
    composed = [one for one in claims if one.kind == COMPOSITION and one.operation == "allgather"]
    # 4 x 64 bytes are not measured, 4 x 1000 bytes are more than all that is.
    assert {(one.size_bytes, one.replacement[-1].size_bytes) for one in composed} == {
        (64, 1000), (64, 64), (1000, 1000),
    }  # fmt: skip


def test_sizes_that_lack_a_larger_one_are_named():
    found = check(side_of(lambda *one: time_s(*one[:2])))
    texts = [one.text() for one in found.unchecked_sizes]
    assert "allgather <= gather + bcast on 4 ranks at 1 KiB (needs bcast of 4 KiB)" in texts
    named = {(one.rule, size) for one in found.unchecked_sizes for size in one.sizes_bytes}
    checked = {(one.rule(), one.size_bytes) for one in found.checks}
    assert not named & checked
    for operation, parts in COMPOSITIONS:
        rule = f"{operation} <= {' + '.join(name for name, _ in parts)}"
        for size in (0,) if operation == "barrier" else SIZES:
            assert (rule, size) in named | checked


def test_steps_that_are_no_guideline_are_named():
    side = side_of(lambda *one: time_s(*one[:2]), sizes=(64, 100))
    texts = [one.text() for one in check(side).unchecked_sizes]
    assert "split of bcast on 4 ranks at 100 B (no multiple of the next smaller size)" in texts


def test_one_size_is_named_at_each_place_that_has_no_other():
    found = side_of(lambda *one: time_s(*one[:2]), sizes=(64, 1000))
    few = side_of(lambda *one: time_s(*one[:2]), sizes=(64,), ranks=8)
    both = replace(found, times_s=found.times_s | few.times_s)
    for side in (few, both):
        texts = [text for text in check(side).not_checked() if "second size" in text]
        for kind in (MONOTONY, SPLIT):
            assert f"{kind} of bcast on 8 ranks at 64 B (needs a second size)" in texts
        assert all("on 8 ranks" in text and "barrier" not in text for text in texts)


def test_times_of_0_are_counted():
    side = side_of(lambda one, size, _: 0.0 if (one, size) == ("bcast", 64) else time_s(one, size))
    assert "1 point left out: a time there is 0" in check(side).notes


@pytest.mark.parametrize(
    ("asked", "launches", "advice"),
    [
        (10, 4, "continue run with --resume and a larger --budget (10 launches were asked for)"),
        (4, 3, "continue run with --resume and more --launches and a larger --budget (4 launches"),
        (4, 4, "continue run with --resume and more --launches"),
        (None, 4, "continue run with --resume and more --launches"),
    ],
)
def test_what_was_short_is_named(asked, launches, advice):
    side = replace(side_of(lambda *one: time_s(*one[:2]), launches=launches), launches_asked=asked)
    (note,) = check(side).notes
    assert f"at least 5): {advice}" in note


def test_intervals_that_are_too_wide_are_counted_with_what_narrows_them():
    found = check(side_of(lambda *one: 1e-6, noise=0.3))
    unclear = found.count(UNDECIDED)
    assert unclear and any(
        note.startswith(f"{unclear} of {len(found.checks)} checks have an interval too wide to decide")
        and note.endswith("continue run with --resume and more --launches")
        for note in found.notes
    )


def test_operations_that_were_not_measured_are_named():
    found = check(side_of(lambda *one: time_s(*one[:2]) if one[0] in ("bcast", "reduce") else None))
    assert "bcast <= scatter + allgather (needs scatter and allgather)" in found.unchecked
    assert {one.kind for one in found.checks} == {MONOTONY, SPLIT}
    with pytest.raises(InputError, match="measure collective"):
        check(side_of(lambda *one: time_s(*one[:2]) if one[0] == "barrier" else None))


def test_other_datatypes_are_other_operations():
    side = side_of(lambda *one: time_s(*one[:2]))
    changed = {
        (*key[:3], tuple((name, "byte" if value == "double" and dict(key[3])["size_bytes"] == 64 else value)
                         for name, value in key[3])): times
        for key, times in side.times_s.items()
    }  # fmt: skip
    claims = claims_of(measured_collectives(Side("run", "mpich", changed, {})))
    assert not [c for c in claims if c.kind == MONOTONY and (c.operation, c.size_bytes) == ("reduce", 64)]


def test_calls_without_data_bound_no_barrier_and_no_smaller_size():
    """Such a call may return at once; IMB prints its time first."""
    fast = side_of(lambda *one: 1e-8 if not one[1] and one[0] != "barrier" else time_s(*one[:2]),
                   sizes=(0, 64, 256))  # fmt: skip
    found = check(fast)
    assert [one.text() for one in found.checks if one.operation == "barrier"] == [
        "barrier <= allreduce(64 B)"
    ]
    assert {one.size_bytes for one in found.checks if one.kind == MONOTONY} == {64}
    assert found.count(VIOLATED) == 0
    few = check(side_of(lambda *one: time_s(*one[:2]), sizes=(0, 64)))
    texts = [one.text() for one in few.unchecked_sizes]
    assert "monotony of bcast on 4 ranks at 64 B (needs a second size)" in texts
    empty = measured_collectives(side_of(lambda *one: time_s(*one[:2]), sizes=(0,)))
    assert not [one for one in claims_of(empty) if one.operation == "barrier"]


def test_written_guidelines_are_read_again(tmp_path):
    found = check(side_of(slow("allgather", 64, 4.0), methods=("default", "ring")))
    path = Path(tmp_path / "guidelines.json")
    path.write_text(json.dumps(found.to_json()))
    assert load_guidelines(path) == found
