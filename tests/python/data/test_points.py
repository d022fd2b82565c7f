"""Texts of points: short, and no two alike."""

from earlybird.data.points import point_texts
from earlybird.data.run_comparison import Point


def test_what_all_points_share_is_left_out():
    points = [
        Point("pingpong", "half_round_trip", "", {"level": "intra_socket", "size_bytes": n})
        for n in (8, 1024)
    ]
    assert point_texts(points) == ["pingpong 8 B", "pingpong 1 KiB"]


def test_quantities_of_one_kernel_differ():
    config = {"operation": "bcast", "size_bytes": 8}
    points = [Point("collective", name, "default", config) for name in ("mean_over_ranks", "completion")]
    points.append(Point("pingpong", "half_round_trip", "", {"size_bytes": 8}))
    texts = point_texts(points)
    assert texts[:2] == ["collective mean_over_ranks default bcast", "collective completion default bcast"]
    assert len(set(texts)) == 3 and texts[2] == "pingpong"


def test_repeats_are_named_only_if_they_do_not_follow_from_the_rest():
    def of(*pairs):
        return [Point("contention", "time", "", {"size_bytes": s, "repeats": r}) for s, r in pairs]

    assert point_texts(of((8, 100), (16, 50))) == ["contention 8 B", "contention 16 B"]
    assert point_texts(of((8, 100), (8, 50))) == ["contention repeats=100", "contention repeats=50"]
