"""Advice on collectives: the best algorithm and segments by size, and settings that make the MPI use them."""

import itertools
from dataclasses import replace

import pytest

from earlybird.advise.collective import advise_collective, advise_collectives
from earlybird.compare.ranking import MIN_EFFECT
from earlybird.data.advice import advice_from_json, collectives_advice_from_json
from earlybird.data.collective_algorithms import Method
from earlybird.data.errors import InputError
from earlybird.data.profile import profile_from_json
from earlybird.data.results import Result, results_to_json
from earlybird.data.schema import Estimate

# With these a chain of segments is the best from some size on, a binomial tree below it.
HOP = {"alpha_s": 2e-5, "beta_s_per_byte": 8e-9}
LARGEST = 1 << 22


def form(algorithm, tree=None, segments=(0,), mpi="openmpi", hop=HOP, **more):
    value = {
        "what": {"operation": "bcast", "algorithm": algorithm, "mpi": mpi},
        "form": "alpha-beta" if tree else "empirical",
        "parameters": {"protocols": [{"inter_node": hop}]},
        "range": {"ranks": [2, 8], "size_bytes": [1, LARGEST], "segments_bytes": list(segments)},
        "map_by": ["node"],
        "machine": {"nodes": 8, "sockets": 1, "cores": 1},
    }
    return value | ({"tree": tree} if tree else {}) | more


def profile_of(forms, launches=7, half_width=0.02):
    """A profile with results of these launches and intervals, if the MPI's default was measured."""
    with_default = {
        one["what"]["operation"]
        for one in forms
        if one["what"]["algorithm"] == "default" and "measured" in one
    }
    times = {
        (one["what"]["operation"], one["what"]["algorithm"], size, segment): time_s
        for one in forms
        if one["what"]["operation"] in with_default
        for _, size, segment, _, time_s in one.get("measured", ())
    }
    results = []
    for (operation, algorithm, size, segment), time_s in times.items():
        config = {"operation": operation, "ranks": 8, "map_by": "node", "root": 0, "size_bytes": size}
        default_s = times[operation, "default", size, 0]
        speed_up = None if algorithm == "default" else around(default_s / time_s, half_width)
        results.append(
            Result(
                "collective", "completion", Method(algorithm, segment).text, config,
                around(time_s, half_width), 0.98, launches, speed_up=speed_up, reference="default",
            )
        )  # fmt: skip
    return profile_from_json(
        {"schema": "earlybird.profile/1", "id": "p", "levels": {}, "forms": list(forms),
         "results": results_to_json(results) if launches else []}
    )  # fmt: skip


def around(value, half_width):
    return Estimate(value, value * (1 - half_width), value * (1 + half_width))


def advise(*forms, size_bytes=LARGEST, ranks=8, launches=7, half_width=0.02, **more):
    return advise_collective(profile_of(forms, launches, half_width), "bcast", ranks, size_bytes, **more)


def trees(mpi="openmpi"):
    return (
        form("linear", "linear", mpi=mpi),
        form("pipeline", "chain", segments=(1024, 1 << 18), mpi=mpi),
        form("binomial", "binomial-doubling", mpi=mpi),
    )


def exact_s(method, size, ranks=8):
    algorithm, _, segment = method.partition(":")
    if algorithm == "binomial":
        return 3 * (HOP["alpha_s"] + HOP["beta_s_per_byte"] * size)
    if algorithm == "linear":
        return (ranks - 1) * (HOP["alpha_s"] + HOP["beta_s_per_byte"] * size)
    piece = min(size, int(segment))
    count = -(-size // piece)
    return (
        (ranks - 1) * (HOP["alpha_s"] + HOP["beta_s_per_byte"] * piece)
        + (count - 1) * HOP["alpha_s"]
        + HOP["beta_s_per_byte"] * (size - piece)
    )


def test_the_best_algorithm_comes_first_with_the_best_segments():
    advice, _ = advise(*trees())
    assert [one.extra["algorithm"] for one in advice.ranked] == ["pipeline", "binomial", "linear"]
    best = advice.ranked[0]
    every = {f"pipeline:{1 << k}": exact_s(f"pipeline:{1 << k}", LARGEST) for k in range(10, 19)}
    assert best.method == min(every, key=every.get)
    assert best.time_s.value == pytest.approx(every[best.method])
    assert best.action.endswith(f"segmentsize={best.extra['segment_bytes']}")
    assert best.speed_up is None and advice.baseline == ""


def test_an_algorithm_of_one_size_is_ranked_at_no_other():
    """Without a second size it has no cost of bytes, and would win by any factor."""
    of_one_size = form(
        "binomial",
        "binomial-doubling",
        hop={"alpha_s": 1e-6},
        range={"ranks": [2, 8], "size_bytes": [8, 8], "segments_bytes": [0]},
    )
    linear, *_ = trees()
    advice, settings = advise(linear, of_one_size)
    assert [one.method for one in advice.ranked] == ["linear"]
    assert {one.method for one in advice.size_ranges} == {"linear"} and "binomial" not in settings.text
    (said,) = advice.notes
    assert said.startswith("binomial is not ranked at 4 MiB") and "measured at 8 B only" in said
    best, *_ = advise(linear, of_one_size, size_bytes=8)[0].ranked
    assert best.method == "binomial"


def test_times_measured_at_the_requested_point_are_compared_with_the_forms():
    linear, _, binomial = trees()
    linear["measured"] = [[8, 1024, 0, "node", 2e-4]]
    binomial["measured"] = [[8, 1024, 0, "node", 1e-4], [4, 1024, 0, "node", 9.0]]
    advice, _ = advise(linear, binomial, size_bytes=1024)
    assert [(one.method, one.measured_time_s.value) for one in advice.ranked] == [
        ("binomial", 1e-4),
        ("linear", 2e-4),
    ]
    assert not advice.notes
    assert {one.basis for one in advice.ranked} == {"measured"}
    # A form that predicts the opposite does not rank first.
    binomial["measured"][0][-1] = 3e-4
    assert [one.method for one in advise(linear, binomial, size_bytes=1024)[0].ranked] == [
        "linear",
        "binomial",
    ]
    (*ranked,) = advise(linear, binomial, size_bytes=1024, layout="8x1x1")[0].ranked
    assert all(one.measured_time_s for one in ranked)
    # Of another machine, or another point, they say nothing.
    for about in ({"layout": "8x1x2"}, {"root": 1}):
        (*ranked,) = advise(linear, binomial, size_bytes=1024, **about)[0].ranked
        assert not any(one.measured_time_s for one in ranked)
    assert advise(linear, binomial, size_bytes=2048)[0].ranked[0].measured_time_s is None


def test_a_segment_size_that_was_measured_to_be_faster_is_advised():
    _, pipeline, _ = trees()
    predicted = advise(pipeline)[0].ranked[0].extra["segment_bytes"]
    assert predicted != 1 << 18
    both = [[8, LARGEST, 1 << 18, "node", 1e-6], [8, LARGEST, predicted, "node", 2e-6]]
    best = advise(pipeline | {"measured": both})[0].ranked[0]
    assert (best.extra["segment_bytes"], best.basis) == (1 << 18, "measured")


def test_without_a_time_of_default_at_the_size_asked_for_there_is_no_gain():
    _, _, binomial = trees()
    of_one_size = form("default", range={"ranks": [2, 8], "size_bytes": [8, 8]})
    advice, _ = advise(of_one_size, binomial)
    assert [one.method for one in advice.ranked] == ["binomial"]
    assert advice.ranked[0].speed_up is None and advice.baseline == ""


def test_the_quickest_barrier_is_advised_and_written():
    """It has no bytes, and so no second size."""

    def barrier(algorithm, alpha_s):
        value = form(algorithm, hop={"alpha_s": alpha_s}, measured=[[8, 0, 0, "node", 2 * alpha_s]])
        value["range"] = {"ranks": [2, 8], "size_bytes": [0, 0]}
        return value | {"what": value["what"] | {"operation": "barrier"}}

    forms = [barrier("default", 1e-4), barrier("dissemination", 1e-5)]
    profile = profile_of(forms)
    advice, settings = advise_collective(profile, "barrier", 8)
    best = advice.ranked[0]
    assert (best.method, best.extra["form"], best.time_s.value) == ("dissemination", "interpolated", 2e-5)
    assert [one.method for one in advice.size_ranges] == ["dissemination"] and not settings.idle
    assert advise_collective(profile, "barrier", 7)[0].ranked[0].extra["form"] == "empirical"


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ({}, "measured is {}; give a JSON list"),
        ([[8, 1024, 0, "node"]], "give a JSON list of length 5"),
        ([[8, 1024, 0, "moon", 1.0]], "map_by is 'moon'"),
        ([[8, 1, 0, "node", -1]], r"measured\[0\]\[4\] is -1"),
    ],
)
def test_measured_points_that_make_no_sense_are_refused(points, says):
    with pytest.raises(InputError, match=says):
        advise(form("linear", "linear", measured=points))


def test_rules_do_not_name_what_open_mpi_does_by_itself_on_nodes_of_several_ranks():
    """There another component than the one that reads rules chooses; where that is best, nothing is set."""
    forms = measured(default=(1, 1, 1), linear=(1, 0.5, 0.5))
    machine = {"machine": {"nodes": 4, "sockets": 1, "cores": 2}}
    _, settings = advise(*(one | machine for one in forms), layout="4x1x2")
    assert settings.idle and [region.method for region in settings.left_out] == ["linear"]
    assert "priority" in str(settings.left_out.values())
    _, alone = advise(*forms)
    assert alone.kind == "rules" and not alone.left_out
    forms = measured(default=(1, 1, 1), linear=(0.5, 0.5, 0.5))
    _, everywhere = advise(*(one | machine for one in forms), layout="4x1x2")
    assert everywhere.kind == "rules" and not everywhere.left_out


def of(operation, forms, **more):
    """Forms of bcast as those of another operation."""
    return [one | {"what": one["what"] | {"operation": operation}} | more for one in forms]


def advise_several(*forms, ranks=8, size_bytes=None, **more):
    profile = profile_of(forms)
    operations = list(dict.fromkeys(one["what"]["operation"] for one in forms))
    return advise_collectives(profile, operations, ranks, size_bytes, **more)


def test_several_operations_get_one_file():
    bcast = measured(default=(1, 1, 1), linear=(1, 0.5, 0.5))
    reduce = of("reduce", measured(default=(1, 1, 1), binomial=(0.5, 0.5, 1)))
    gather = of("gather", measured(default=(1, 1, 1), linear=(1, 1, 1)))
    advice, settings = advise_several(*bcast, *reduce, *gather)
    assert settings.changed == ("bcast", "reduce") and settings.text.startswith("2  # operations")
    alone = [advise(*bcast)[1], advise_several(*reduce)[1]]
    blocks = [one.text.partition("\n")[2] for one in alone]
    assert settings.text == "2  # operations\n" + "".join(blocks)
    assert [one.asked["operation"] for one in advice.advice] == ["bcast", "reduce", "gather"]
    # On disk: each as alone but for the settings, which are those of all.
    again = collectives_advice_from_json(advice.to_json())
    assert again == advice and again.to_json()["config"]["text"] == settings.text
    assert {one["operation"] for one in again.to_json()["config"]["regions"]} == {"bcast", "reduce", "gather"}
    assert advice.advice[0] == replace(advise(*bcast, size_bytes=None)[0], extra={})


def test_rules_for_nodes_of_several_ranks_are_for_all_operations_or_none():
    """They take every operation away from the component that chooses by default there."""
    machine = {"machine": {"nodes": 4, "sockets": 1, "cores": 2}}
    faster = measured(default=(1, 1, 1), linear=(0.5, 0.5, 0.5))
    partly = measured(default=(1, 1, 1), linear=(1, 0.5, 0.5))
    bcast, reduce = of("bcast", faster, **machine), of("reduce", partly, **machine)
    _, settings = advise_several(*bcast, *reduce, layout="4x1x2")
    assert settings.idle and {region.operation for region in settings.left_out} == {"bcast", "reduce"}
    (reason,) = set(settings.left_out.values())
    assert "some sizes of reduce" in reason and "rules for bcast alone would change reduce, too" in reason
    _, settings = advise_several(*bcast, *of("reduce", faster, **machine), layout="4x1x2")
    assert settings.changed == ("bcast", "reduce") and not settings.left_out
    # One algorithm serves all sizes of a gather: at a size that was not measured, the default.
    gather = of("gather", faster, **machine)
    _, settings = advise_several(*bcast, *gather, layout="4x1x2", size_bytes=2 * LARGEST)
    assert settings.idle and "some sizes of gather" in str(settings.left_out.values())
    _, settings = advise_several(*bcast, *gather, layout="4x1x2", size_bytes=4096)
    assert settings.changed == ("bcast", "gather")


def test_an_operation_without_advice_is_named():
    sizes = {"ranks": [2, 8], "size_bytes": [64, 64], "segments_bytes": [0]}
    gather = of("gather", [form("linear", range=sizes)])
    with pytest.raises(InputError, match=r"^gather: nothing can be advised.*; or leave gather out of --op$"):
        advise_several(*trees(), *gather, size_bytes=4096)


def test_a_root_and_a_size_are_those_of_the_operations_that_have_them():
    barrier = of("barrier", [form("default"), form("tree")], range={"ranks": [2, 8], "size_bytes": [0, 0]})
    advice, _ = advise_several(*measured(default=(1, 1, 1)), *barrier, root=1, size_bytes=4096)
    assert [(one.asked["root"], one.asked["size_bytes"]) for one in advice.advice] == [(1, 4096), (0, 0)]
    with pytest.raises(InputError, match="--root is 1 and barrier and allreduce have no root"):
        advise_several(*barrier, *of("allreduce", [form("ring")]), root=1)


def test_operations_of_two_mpis_have_no_common_settings():
    with pytest.raises(InputError, match="hold bcast of openmpi and reduce of mpich"):
        advise_several(*trees(), *of("reduce", trees("mpich")))


def test_settings_deviate_from_the_default_only_where_that_was_measured_to_be_faster():
    """However much faster the models of the algorithms are between and beyond the measured sizes."""
    for times, expected in (
        # At both sizes that bound it; the default's from the next measured size on, and beyond the last one.
        ((1, 0.5, 0.5), [(0, 0), (4096, 1), (65537, 0)]),
        ((0.5, 0.5, 1), [(0, 0), (64, 1), (4097, 0)]),
    ):
        _, settings = advise(*measured(default=(1, 1, 1), linear=times))
        assert rules_of(settings) == expected
    # Faster, but not clearly; and on other ranks than those measured.
    assert advise(*measured(default=(1, 1, 1), linear=(0.97, 0.97, 0.97)))[1].idle
    assert advise(*measured(default=(1, 1, 1), linear=(0.5, 0.5, 0.5)), ranks=4)[1].idle


def test_between_two_algorithms_the_one_that_is_faster_at_both_sizes_is_set():
    forms = measured(default=(1, 1, 1), linear=(0.3, 0.97, 0.5), binomial=(1, 0.3, 0.3))
    assert rules_of(advise(*forms)[1]) == [(0, 0), (4096, 6), (65537, 0)]
    forms = measured(default=(1, 1, 1), linear=(0.3, 0.5, 0.5), binomial=(1, 0.3, 0.3))
    assert rules_of(advise(*forms)[1]) == [(0, 0), (64, 1), (4096, 6), (65537, 0)]


def test_a_single_size_between_others_gets_no_rule():
    for times, alone in (((1, 0.5, 1), [4096]), ((0.5, 1, 0.5), [64, 65536])):
        _, settings = advise(*measured(default=(1, 1, 1), linear=times))
        assert settings.idle
        left_out = {(one.method, one.from_bytes, one.to_bytes) for one in settings.left_out}
        assert left_out == {("linear", size, size) for size in alone}
        assert "at one size only" in str(settings.left_out.values())
    # A single size that is all there is gets its rule.
    alone = [
        form(name, range={"ranks": [2, 8], "size_bytes": [64, 64]}, measured=[[8, 64, 0, "node", time_s]])
        for name, time_s in (("default", 2e-5), ("linear", 1e-5))
    ]
    assert rules_of(advise(*alone, size_bytes=64)[1]) == [(0, 0), (64, 1), (65, 0)]


def test_too_few_launches_keep_the_default_and_say_so():
    forms = measured(default=(1, 1, 1), linear=(0.8, 0.8, 0.8))
    assert advise(*forms, size_bytes=4096)[0].ranked[0].method == "linear"
    for launches in (1, 2):
        advice, settings = advise(*forms, size_bytes=4096, launches=launches)
        assert advice.ranked[0].method == "default" and settings.idle
        assert {one.method for one in advice.size_ranges} == {"default"}
        assert any("chance alone" in one and "linear, speed-up 1.25" in one for one in advice.notes)
        assert any("single launch decides nothing" in one for one in advice.notes) == (launches == 1)


@pytest.mark.parametrize("shares_cores", [False, True])
def test_a_point_measured_again_is_not_asked_for_once_more(shares_cores):
    """Few noisy launches at the other sizes do not count; on shared cores no launches help."""
    sizes = [8 << k for k in range(6)]
    forms = [
        form("default", measured=[[8, size, 0, "node", 9e-5] for size in sizes]),
        form("chain", "chain", measured=[[8, size, 0, "node", 3e-5] for size in sizes]),
    ]
    profile = profile_of(forms, launches=3)
    rows = [
        row
        | {"noisy": row["launches"], "oversubscribed": shares_cores}
        | ({"launches": 24} if row["size_bytes"] == 8 else {})
        for row in profile.extra["results"]
    ]
    advice, _ = advise_collective(replace(profile, extra={"results": rows}), "bcast", 8, 8)
    assert not any("measure again" in note for note in advice.notes)
    assert (advice.ranked[0].method == "default") is shares_cores
    assert any("in 24 launches; ranks share cores" in note for note in advice.notes) is shares_cores


def test_a_speed_up_that_is_clear_alone_is_chance_among_many():
    """Seven launches that differ by 25 %, one speed-up of 1.2, and none anywhere else."""
    lucky, even = (1, 1.2, 1, 1, 1, 1), (1,) * 6
    for others, is_advised in (((), True), (("binomial", "chain", "binary", "pipeline"), False)):
        speed_ups = {"default": even, "linear": lucky if others else (1.2,)} | dict.fromkeys(others, even)
        sizes = [64 << 2 * k for k in range(6)] if others else [256]
        points = {
            name: [[8, size, 0, "node", 1e-7 * size / gain] for size, gain in zip(sizes, gains, strict=False)]
            for name, gains in speed_ups.items()
        }
        forms = [form(name, measured=of_name) for name, of_name in points.items()]
        advice, settings = advise(*forms, size_bytes=256, half_width=0.12)
        assert (advice.ranked[0].method == "linear") == is_advised and settings.idle != is_advised
        is_said = any("chance alone makes some as fast: linear, speed-up 1.20" in one for one in advice.notes)
        assert is_said != is_advised


def measured(**times):
    """Forms of algorithms that took these times at 64 B, 4 KiB and 64 KiB, times their size."""
    return [
        form(name, measured=[[8, size, 0, "node", 1e-7 * size * factor]
                             for size, factor in zip((64, 4096, 65536), factors, strict=True)])
        for name, factors in times.items()
    ]  # fmt: skip


def rules_of(settings):
    """From how many bytes on which algorithm, of the file for the 8 ranks that were asked for."""
    lines = [line.split("#")[0].split() for line in settings.text.splitlines()]
    begin = lines.index(["8"]) + 2
    return [(int(lines[k][0]), int(lines[k][1])) for k in range(begin, begin + int(lines[begin - 1][0]))]


def test_crossovers_are_where_another_method_takes_clearly_less():
    advice, _ = advise(*trees())
    assert advice.size_ranges[0].method == "binomial" and advice.size_ranges[0].from_bytes == 1
    assert advice.size_ranges[-1].to_bytes == LARGEST
    for before, after in itertools.pairwise(advice.size_ranges):
        size = before.to_bytes
        assert size == after.from_bytes
        # Just beyond it the next one is clearly faster; it was not well before.
        assert exact_s(after.method, round(1.05 * size)) < 1.02 / (1 + MIN_EFFECT) * exact_s(
            before.method, round(1.05 * size)
        )
        assert exact_s(after.method, round(0.7 * size)) > 1 / (1 + MIN_EFFECT) * exact_s(
            before.method, round(0.7 * size)
        )


def test_an_algorithm_is_advised_only_at_sizes_at_which_the_mpi_takes_it():
    """Open MPI's split binary tree is one chain where a half of the message holds no segment."""
    quick = {"alpha_s": 1e-6, "beta_s_per_byte": 1e-10}
    split = form("split-binary", segments=(4096,), hop=quick)
    for asked in (1024, LARGEST):
        advice, settings = advise(*trees(), split, size_bytes=asked)
        assert [one.method for one in advice.size_ranges] == ["binomial", "split-binary:4096"]
        assert advice.size_ranges[1].from_bytes == pytest.approx(8192, rel=0.02)
        assert "4 0 4096" in settings.text
        ranked = {one.extra["algorithm"] for one in advice.ranked}
        assert ("split-binary" in ranked) == (asked == LARGEST)
        is_noted = "split-binary is not ranked at 1 KiB: it needs a byte and a segment in each half" in str(
            advice.notes
        )
        assert is_noted == (asked != LARGEST)
    with pytest.raises(InputError, match="nothing can be advised: split-binary is not ranked at 1 B"):
        advise(split, size_bytes=1)


def test_gains_are_over_what_the_mpi_does_by_itself():
    slow = {"alpha_s": 3 * 2e-5, "beta_s_per_byte": 9 * 8e-9}
    advice, _ = advise(*trees(), form("default", hop=slow), size_bytes=1)
    assert advice.baseline == "default"
    speed_ups = {one.method: one.speed_up.value for one in advice.ranked}
    assert speed_ups["default"] == 1
    assert speed_ups["binomial"] == pytest.approx(1, rel=0.01)
    # Of equals the one that needs no setting.
    assert advice.ranked[0].method == "default"
    assert advice.ranked[0].action == "nothing: this is the default of the MPI"


def test_own_algorithms_are_ranked_for_comparison_and_neither_advised_nor_configured():
    quick = {"alpha_s": 1e-6, "beta_s_per_byte": 1e-9}
    own = form("own-binomial", "binomial-doubling", hop=quick)
    advice, settings = advise(*trees(), own)
    assert advice.ranked[0].method.startswith("pipeline:") and advice.ranked[1].method == "own-binomial"
    assert any("own-binomial, an algorithm of Earlybird, takes" in text for text in advice.notes)
    assert not any(region.method.startswith("own-") for region in advice.size_ranges)
    assert "own" not in settings.text and "pipeline" in settings.text
    advice, _ = advise(*trees(), own, mpi_only=True)
    assert advice.ranked[0].method.startswith("pipeline:")
    with pytest.raises(InputError, match="omit --mpi-only"):
        advise(own, mpi_only=True)
    assert advise(own)[1] is None


def test_open_mpi_gets_a_rule_for_every_region():
    advice, settings = advise(*trees())
    numbers = {"binomial": 6, "pipeline": 3, "linear": 1}
    expected = [
        (one.from_bytes if k else 0, numbers[one.extra["algorithm"]])
        for k, one in enumerate(advice.size_ranges)
    ]
    assert settings.kind == "rules" and rules_of(settings) == expected
    assert f"0 {advice.size_ranges[-1].extra['segment_bytes']}  #" in settings.text
    assert advice.to_json()["config"]["text"] == settings.text


def test_mpich_gets_variables_of_the_widest_region():
    advice, settings = advise(*trees("mpich"))
    assert settings.kind == "shell" and "export MPIR_CVAR_BCAST_INTRA_ALGORITHM=" in settings.text
    assert len(settings.left_out) == len(advice.size_ranges) - 1


def test_advice_survives_a_file_and_says_what_was_extrapolated():
    advice, _ = advise(*trees(), ranks=64, size_bytes=None)
    assert advice.asked["size_bytes"] == LARGEST
    again = advice_from_json(advice.to_json())
    assert again.ranked == advice.ranked and again.size_ranges == advice.size_ranges
    assert again.ranked[0].extra["extrapolated"] == ["ranks"]
    assert any("64 is extrapolated" in text for text in again.notes)


def test_an_unknown_mpi_gets_words_instead_of_settings():
    advice, settings = advise(*trees("homemade"))
    assert settings is None
    assert advice.ranked[0].action.endswith("see the manual of this MPI")


def test_a_speed_up_within_the_errors_of_the_forms_is_not_advised():
    slow = {"alpha_s": 3 * 2e-5 * 1.25, "beta_s_per_byte": 3 * 8e-9 * 1.25}  # a fifth more than binomial's
    for error, is_advised in ((0.03, True), (0.3, False)):
        forms = form("binomial", "binomial-doubling", error=error), form("default", hop=slow, error=0.03)
        advice, settings = advise(*forms, size_bytes=1)
        best = {one.method: one for one in advice.ranked}["binomial"]
        assert best.speed_up.value == pytest.approx(1.25, rel=0.01)
        assert best.speed_up.low < best.speed_up.value < best.speed_up.high
        assert advice.ranked[0].method == ("binomial" if is_advised else "default")
        assert any("too uncertain to tell" in note for note in advice.notes) != is_advised
        assert [one.method for one in advice.size_ranges] == [advice.ranked[0].method]
        assert settings.idle  # nothing was measured
