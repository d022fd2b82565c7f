"""Which points a suite measures, where its ranks sit, and which options it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import Pattern
from earlybird.measure.groups import Library
from earlybird.measure.suites import (
    SUITES,
    Options,
    Resources,
    exchange_group,
    exchange_groups,
    find_suites,
    options_of,
)

EVERYWHERE = Resources.of(cores_per_socket=4, sockets=2, nodes=2)


def groups(suite, resources=EVERYWHERE, **options):
    return SUITES[suite].groups(Options(**options), resources, "mpich")


def test_a_place_has_the_levels_it_can_reach():
    assert Resources.of(4, 1).cores == {"intra_socket": 4}
    assert Resources.of(4, 2).cores == {"intra_socket": 4, "inter_socket": 4}
    assert EVERYWHERE.cores == {"intra_socket": 4, "inter_socket": 4, "inter_node": 8}


def test_pingpong_measures_every_level_from_0_bytes_to_64_mib():
    found = groups("pingpong")
    assert [group.layout.text for group in found] == ["1x1x2", "1x2x1", "2x1x1"]
    for group, level in zip(found, EVERYWHERE.cores, strict=True):
        assert {point["level"] for point in group.points} == {level}
        sizes = [point["size_bytes"] for point in group.points]
        assert (sizes[0], sizes[1], sizes[-1]) == (0, 1, 64 << 20)
        assert all(point["buffers"] == "vary" for point in group.points)


def test_quick_measures_fewer_points():
    some_mpi = replace(EVERYWHERE, family="mpich", library=Library("mpich"))
    for suite in SUITES:
        quick, full = (
            [
                (p["size_bytes"], p.get("threads"))
                for g in groups(suite, some_mpi, quick=quick)
                for p in g.points
            ]
            for quick in (True, False)
        )
        assert set(quick) < set(full)


def test_contention_takes_pairs_of_each_level():
    found = {(g.points[0]["level"], g.points[0]["competitors"]): g.layout for g in groups("contention")}
    assert found["intra_socket", 1].num_ranks == 2
    for (level, competitors), layout in found.items():
        half = layout.num_ranks // 2
        src = np.arange(half)
        assert (layout.level(src, src + half) == list(EVERYWHERE.cores).index(level)).all()
        if level != "intra_socket":
            assert half == competitors


def test_a_full_node_fills_its_sockets_one_after_the_other():
    (group,) = groups("contention", competitors=(8,), levels=("inter_node",))
    assert group.layout.node.tolist() == [0] * 8 + [1] * 8
    assert group.layout.socket.tolist() == [0, 0, 0, 0, 1, 1, 1, 1] * 2


@pytest.mark.parametrize(("cores", "counts"), [(1, [1, 2]), (2, [1, 2]), (6, [1, 2, 4, 6]), (7, [1, 2, 4, 6]),
                                               (16, [1, 2, 4, 8, 16])])  # fmt: skip
def test_competitors_go_up_to_the_cores_there_are(cores, counts):
    found = groups("contention", Resources.of(cores, 1))
    assert [group.points[0]["competitors"] for group in found] == counts


def test_contention_moves_about_as_many_bytes_at_every_size():
    for point in groups("contention", Resources.of(2, 1))[0].points:
        moved = point["repeats"] * point["size_bytes"]
        assert 1 <= point["repeats"] <= 64
        assert moved <= 16 << 20
        assert point["repeats"] == 64 or moved > 8 << 20


def test_contention_sends_one_message_at_once_where_buffers_are_reused():
    found = groups("contention", Resources.of(2, 1), buffers="reuse")
    assert {(point["repeats"], point["buffers"]) for group in found for point in group.points} == {
        (1, "reuse")
    }


def test_completion_has_a_prompt_and_a_late_receiver_for_one_pair_of_every_level():
    found = groups("completion")
    assert [group.layout.text for group in found] == ["1x1x2", "1x2x1", "2x1x1", "2x1x2"]
    *found, shared = found
    assert {(point["receiver"], point["pairs"]) for point in shared.points} == {("prompt", 2)}
    assert [point["size_bytes"] / 2**20 for point in shared.points] == [1, 2, 2.5, 2.75, 3, 3.25, 3.5, 4]
    for group, level in zip(found, EVERYWHERE.cores, strict=True):
        assert {point["level"] for point in group.points} == {level}
        sizes = [point["size_bytes"] for point in group.points if point["receiver"] == "prompt"]
        assert sizes == [point["size_bytes"] for point in group.points if point["receiver"] == "late"]
        assert sizes == sorted(sizes) and (sizes[0], sizes[-1]) == (1, 4 << 20)


def test_chosen_options_are_taken():
    (group,) = groups("pingpong", sizes_bytes=(8, 64), buffers="reuse", levels=("inter_node",))
    assert [(p["size_bytes"], p["buffers"], p["level"]) for p in group.points] == [
        (8, "reuse", "inter_node"),
        (64, "reuse", "inter_node"),
    ]
    (group,) = groups("completion", sizes_bytes=(8,), levels=("inter_node",))
    assert [(p["size_bytes"], p["receiver"]) for p in group.points] == [(8, "prompt"), (8, "late")]
    _, shared = groups("completion", sizes_bytes=(8, 1 << 20), levels=("inter_node",))
    assert [p["size_bytes"] for p in shared.points] == [1 << 20]
    found = groups("contention", competitors=(1, 4), levels=("intra_socket",), sizes_bytes=(1000,))
    assert [group.layout.text for group in found] == ["1x1x2", "1x1x4"]


@pytest.mark.parametrize(
    ("suite", "options", "sentence"),
    [
        ("pingpong", {"levels": ("inter_rack",)}, "inter_rack"),
        ("pingpong", {"sizes_bytes": (1 << 31,)}, "2147483648 bytes"),
        ("contention", {"sizes_bytes": (1 << 31,)}, "2147483648 bytes"),
        ("contention", {"competitors": (3,)}, "even"),
        ("pipeline", {"sizes_bytes": (21,), "partitions": (4,)}, "21 bytes, which 4 partitions .* as 20"),
        ("pipeline", {"sizes_bytes": (1 << 31,)}, "2147483648 bytes"),
        ("pipeline", {"sizes_bytes": (64,), "gammas_s_per_byte": (100.0,)}, "1600 s late"),
        ("completion", {"sizes_bytes": (1 << 31,)}, "2147483648 bytes"),
    ],
)
def test_what_cannot_be_measured_is_refused(suite, options, sentence):
    with pytest.raises(InputError, match=sentence):
        groups(suite, **options)


def test_a_level_that_is_not_here_is_refused():
    with pytest.raises(InputError, match="not available; the levels are intra_socket"):
        groups("pingpong", Resources.of(4, 1), levels=("inter_node",))


def test_odd_competitors_are_fine_between_sockets():
    (group,) = groups("contention", competitors=(3,), levels=("inter_socket",))
    assert group.layout.text == "1x2x3"


def test_options_belong_to_the_suites_that_know_them():
    settings = {"quick": True, "sizes": "8,1KiB", "threads": 2, "thread_counts": "1,4", "partitions": "4"}
    pingpong, pipeline = find_suites(["pingpong", "pipeline"])
    common = {"quick": True, "launcher_threads": 2, "sizes_bytes": (8, 1024)}
    assert options_of([pingpong], settings) == Options(**common)
    assert options_of([pipeline], settings) == Options(**common, partitions=(4,), threads=(1, 4))


@pytest.mark.parametrize("suite", SUITES.values(), ids=list(SUITES))
def test_every_option_of_a_suite_has_its_key(suite):
    keys = [option.key for option in suite.takes]
    assert len(keys) == len(set(keys))


def test_an_option_that_no_suite_declares_is_an_error():
    options = Options(sizes_bytes=(8,))
    assert options.competitors is None and options.changed(competitors=(2,)).competitors == (2,)
    with pytest.raises(AttributeError, match="size_bytes"):
        _ = options.size_bytes
    with pytest.raises(TypeError, match="size_bytes"):
        options.changed(size_bytes=(8,))


def test_suites_are_found_by_name_once():
    assert [suite.name for suite in find_suites(["contention", "contention"])] == ["contention"]
    with pytest.raises(InputError, match=f"suites are {', '.join(SUITES)}"):
        find_suites(["latency"])
    with pytest.raises(InputError, match="earlybird replay"):
        find_suites(["exchange"])


def test_pipeline_measures_every_level_with_one_delay():
    found = groups("pipeline")
    assert [group.layout.text for group in found] == ["1x1x2", "1x2x1", "2x1x1"]
    for group, level in zip(found, EVERYWHERE.cores, strict=True):
        assert group.methods == ("single", "many")
        assert {(p["level"], p["partitions"], p["gamma_s_per_byte"]) for p in group.points} == {
            (level, 4, 1e-10)
        }
        sizes = [point["size_bytes"] for point in group.points]
        assert (sizes[0], sizes[-1]) == (1 << 10, 16 << 20)


def test_pipeline_chooses_the_delay_for_the_rate_of_a_link():
    """gamma*beta is 2.5 on it, as in figure 8 of Gillis et al. 2023; a rate that is not known is theirs."""
    virtual = Resources.of(2, 1, nodes=4, link_bytes_per_s=25e6)
    gammas = {
        p["level"]: p["gamma_s_per_byte"] for group in groups("pipeline", virtual) for p in group.points
    }
    assert gammas == {"intra_socket": 1e-10, "inter_node": pytest.approx(2.5 / 25e6)}
    (_, link) = groups("pipeline", virtual, gammas_s_per_byte=(3e-9,))
    assert {point["gamma_s_per_byte"] for point in link.points} == {3e-9}


@pytest.mark.parametrize("quick", [False, True])
def test_a_timed_region_keeps_a_link_busy_for_a_tenth_of_a_second_or_one_message_of_each_rank(quick):
    virtual = Resources.of(2, 1, nodes=4, link_bytes_per_s=25e6)
    found = groups("contention", virtual, levels=("inter_node",), quick=quick)
    assert {group.points[0]["competitors"] for group in found} == {1, 2, 4}
    for group in found:
        for point in group.points:
            assert point["repeats"] == 1 or group.link_s(point) <= (0.05 if quick else 0.1)
    completion, _ = groups("completion", virtual, levels=("inter_node",), quick=quick)
    assert max(point["size_bytes"] for point in completion.points) == (1 << 20 if quick else 4 << 20)


def test_pipeline_crosses_what_is_chosen_and_cuts_its_own_sizes_evenly():
    options = {"sizes_bytes": (0, 64), "partitions": (1, 8), "gammas_s_per_byte": (0.0, 1e-9)}
    (group,) = groups("pipeline", Resources.of(2, 1), **options)
    chosen = {(p["size_bytes"], p["partitions"], p["gamma_s_per_byte"]) for p in group.points}
    assert chosen == {(s, n, g) for s in (0, 64) for n in (1, 8) for g in (0.0, 1e-9)}
    for partitions in (3, 5000):
        (group,) = groups("pipeline", Resources.of(2, 1), partitions=(partitions,))
        sizes = [point["size_bytes"] for point in group.points]
        assert len(set(sizes)) == len(sizes) > 3
        assert all(size > 0 and size % partitions == 0 for size in sizes)


def test_an_exchange_is_one_point_named_by_its_pattern():
    pattern = Pattern([0, 1], [1, 0], [8, 9])
    group = exchange_group(pattern, parse_layout("1x2x1", "socket"), "mpich")
    (point,) = group.points
    assert point["pattern_sha256"] == pattern.sha256()
    assert (point["ranks"], point["messages"]) == (2, 2)
    with pytest.raises(InputError, match="rank 1"):
        exchange_group(pattern, parse_layout("1x1x1"), "mpich")
    with pytest.raises(InputError, match="at most"):
        exchange_group(Pattern([0], [1], [1 << 31]), parse_layout("1x1x2"), "mpich")


def test_the_empty_exchange_has_the_messages_of_the_other_without_data():
    pattern, layout = Pattern([0, 1], [1, 0], [8, 9]), parse_layout("1x1x2")
    whole, empty = exchange_groups(pattern, layout, "mpich", with_empty=True)
    assert whole == exchange_group(pattern, layout, "mpich")
    assert empty.pattern.triples().tolist() == [[0, 1, 0], [1, 0, 0]]
    assert empty.points[0]["empty"] == "yes"
    assert exchange_groups(pattern, layout, "mpich") == [whole]
    assert len(exchange_groups(empty.pattern, layout, "mpich", with_empty=True)) == 1


@pytest.mark.parametrize(("suite", "key", "value"), [("pingpong", "sizes", [8]), ("collective", "op", True)])
def test_a_setting_of_another_kind_is_refused_by_its_key(suite, key, value):
    with pytest.raises(
        InputError, match=rf"settings.{key} of the run is .*; give what --{key} takes, as text"
    ):
        options_of(find_suites([suite]), {"quick": False, key: value})
