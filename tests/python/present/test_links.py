"""Oversubscribed samples that are limited by a virtual link are reported separately."""

import numpy as np
import pytest

from earlybird.analysis.link_limits import exchange_share
from earlybird.data.pattern import Pattern
from earlybird.data.run import Sample
from earlybird.present.contents import contents
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.subjects.exchange.sources import exchanges
from earlybird.present.subjects.provenance.view import lights, remedies

RATE = 24e6
PLACES = [{"rank": rank, "node": rank // 2} for rank in range(4)]
LAUNCH = {"id": "a", "flavour": "mpich", "placement": PLACES, "link": {"expected_bytes_per_s": RATE}}
PATTERN = Pattern(np.array([0, 1, 2]), np.array([2, 3, 3]), np.array([600_000, 600_000, 5_000_000]))


def contention(size_bytes, time_s, level="inter_node"):
    config = {"mpi": "mpich", "level": level, "competitors": 4, "size_bytes": size_bytes}
    return Sample("contention", "time_per_repeat", config, "a", np.full(9, time_s), oversubscribed=True)


def exchange(time_s):
    config = {"mpi": "mpich", "layout": "2x1x2", "pattern_sha256": PATTERN.sha256()}
    times_s = np.full((5, 4), time_s)
    return Sample(
        "exchange", "exchange", config, "a", times_s[:, 0], oversubscribed=True, rank_times_s=times_s
    )


def run(*samples, launch=LAUNCH):
    return MeasuredRun("run", {"id": "run"}, (launch,), samples)


def test_a_light_separates_link_limited_from_oversubscribed_samples():
    full, small = contention(1 << 20, 4 * (1 << 20) / RATE), contention(8, 30e-6)
    (light,) = lights(run(full, small), False)
    assert (light.oversubscribed, light.link_limited, light.state) == (2, 1, "warn")
    assert light.text == "2 of 2 samples converged, 2 oversubscribed (1 of them link-limited)"
    (alone,) = lights(run(full), False)
    assert alone.state == "good" and "Oversubscribed" not in " ".join(remedies([run(full)], [alone]))


@pytest.mark.parametrize(
    "sample", [contention(1 << 20, 5 * (1 << 20) / RATE), contention(1 << 20, 1e-4, "intra_socket")]
)
def test_a_link_that_is_not_busy_is_not_the_bottleneck(sample):
    (light,) = lights(run(sample), False)
    assert (light.oversubscribed, light.link_limited) == (1, 0)


def test_without_a_virtual_link_no_sample_is_link_limited():
    (light,) = lights(run(contention(1 << 20, 1e-3), launch={"id": "a"}), False)
    assert (light.oversubscribed, light.link_limited) == (1, 0)


def test_the_busiest_link_counts_only_bytes_between_nodes():
    assert exchange_share(PATTERN, LAUNCH, 0.1) == (0, pytest.approx(1.2e6 / RATE / 0.1))
    inside = Pattern(np.array([0]), np.array([1]), np.array([9]))
    assert exchange_share(inside, LAUNCH, 0.1) is None
    assert exchange_share(PATTERN, LAUNCH | {"placement": PLACES[:2]}, 0.1) is None
    assert exchange_share(PATTERN, None, 0.1) is None


def parts(material):
    chapters = contents(material).chapters
    return chapters["measured"], chapters["exchange"]


def test_an_exchange_that_saturates_a_link_is_link_limited():
    full = Material(runs=(run(exchange(0.055)),), patterns=(PATTERN,))
    measured, cost = parts(full)
    assert [light.link_limited for light in measured.lights] == [1]
    assert any("the busiest link, that of node 0, needs 91 %" in line for line in cost.warnings)
    assert not any("no model describes" in line for line in cost.warnings)
    slow = Material(runs=(run(exchange(0.2)),), patterns=(PATTERN,))
    assert not exchanges(slow)[0].link_limited
    measured, cost = parts(slow)
    assert [light.oversubscribed for light in measured.lights] == [1]
    assert any("no model describes" in line for line in cost.warnings)
