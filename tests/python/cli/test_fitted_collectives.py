"""The report draws the times of forms for the collectives they describe, and published regressions."""

from dataclasses import replace

import numpy as np
import pytest

from earlybird.data.profile import profile_from_json
from earlybird.data.run import Sample
from earlybird.present.fitted import with_collectives
from earlybird.present.material import Material, MeasuredRun

ALPHA_S, BETA, FAR_S = 1e-6, 1e-9, 1e-5
LEVEL = {"protocols": [{"latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9}}]}


def profile(algorithm="pipeline", tree="chain", **more):
    coefficients = {
        "intra_socket": {"alpha_s": ALPHA_S, "beta_s_per_byte": BETA},
        "inter_node": {"alpha_s": FAR_S},
    }
    form = {
        "what": {"operation": "bcast", "algorithm": algorithm, "mpi": "openmpi"},
        "form": "alpha-beta",
        "tree": tree,
        "parameters": {"protocols": [{"min_bytes": 0} | coefficients]},
        "range": {"ranks": [2, 8], "size_bytes": [1, 1 << 20]},
        "map_by": ["node"],
    }
    value = {"schema": "earlybird.profile/1", "context": {"flavour": "openmpi"}, "forms": [form | more]}
    return profile_from_json(value | {"levels": {"intra_socket": LEVEL}})


def sample(method="pipeline:1000", launch="0", quantity="completion", **config):
    common = {"mpi": "openmpi", "operation": "bcast", "ranks": 4, "layout": "2x1x2", "map_by": "core",
              "size_bytes": 4000, "root": 0}  # fmt: skip
    return Sample("collective", quantity, common | config, launch, np.ones(3), method=method)


def placement(*nodes):
    return [{"rank": rank, "node": node, "socket": 0} for rank, node in enumerate(nodes)]


def material(*samples, profiles=None, launches=()):
    run = MeasuredRun("run", {"id": "mine"}, launches, samples)
    return with_collectives(Material(runs=(run,), profiles=(profile(),) if profiles is None else profiles))


def test_the_hops_are_those_of_the_observed_placement():
    one = sample()
    near = ({"id": "0", "placement": placement(0, 0, 0, 0)},)
    assert material(one, launches=near).fitted_collectives == {
        one.point(): pytest.approx(6 * (ALPHA_S + BETA * 1000))
    }
    # With the requested layout, two ranks per node: segments wait for the hop between nodes, the slowest.
    requested = material(one).fitted_collectives[one.point()]
    assert requested == pytest.approx(2 * (ALPHA_S + BETA * 1000) + 4 * FAR_S)


@pytest.mark.parametrize(
    "other",
    [{"mpi": "mpich"}, {"operation": "reduce"}, {"method": "linear"}, {"quantity": "other"},
     {"layout": "somewhere"}],
)  # fmt: skip
def test_no_time_is_given_for_what_was_not_fitted(other):
    assert material(sample(**other)).fitted_collectives == {}


def test_the_profile_fitted_to_the_run_is_preferred():
    near = ({"id": "0", "placement": placement(0, 0, 0, 0)},)
    mine = profile_from_json(profile().to_json() | {"runs": [{"id": "mine"}]})
    other = profile(parameters={"protocols": [{"min_bytes": 0, "intra_socket": {"alpha_s": 1.0}}]})
    fitted = material(sample(), profiles=(other, mine), launches=near).fitted_collectives
    assert list(fitted.values()) == [pytest.approx(6 * (ALPHA_S + BETA * 1000))]


def test_published_regressions_are_of_the_operations_mappings_and_sizes_measured():
    small = [sample(ranks=ranks, size_bytes=1, map_by="node") for ranks in (2, 256)]
    curves = {curve.algorithm: curve for curve in material(*small).references}
    assert set(curves) == {"linear", "pipeline", "binomial"}
    line = curves["linear"]
    assert (line.operation, line.map_by, line.size_bytes) == ("bcast", "node", 1)
    assert (line.ranks[0], line.ranks[-1]) == (2, 256)
    assert line.time_s[-1] == pytest.approx(0.2388e-6 * 256)
    grid = material(sample(ranks=64, size_bytes=1 << 16, map_by="socket")).references
    binomial = next(curve for curve in grid if curve.algorithm == "binomial")
    assert binomial.time_s[-1] == pytest.approx(1e-6 * 2 ** (0.5938 * 6 + 9.099e-06 * (1 << 16)))
    assert not material(sample(ranks=64, size_bytes=1 << 24)).references
    assert not material(sample(operation="barrier", size_bytes=0, map_by="node")).references


def late(method, *late_ranks):
    """A verification with four ranks, each delayed in turn: rank k delays `late_ranks[k]`."""
    times_s = np.full((4, 4), 1e-5)
    for k, ranks in enumerate(late_ranks):
        times_s[k, [k, *ranks]] = 0.1
    one = sample(method, quantity="delayed_completion", delay_s=0.1)
    return replace(one, times_s=np.full(4, 0.1), rank_times_s=times_s, extra={"delayed_ranks": [0, 1, 2, 3]})


def test_verifications_are_given_for_algorithms_with_a_tree():
    linear, chain = ([1, 2, 3], [], [], []), ([1, 2, 3], [2, 3], [3], [])
    samples = late("linear", *linear), late("pipeline:1000", *linear), late("own-pipeline:8", *chain)
    launches = ({"id": "0", "library_version": "Open MPI v5.0.8", "placement": placement(0, 0, 0, 0)},)
    verifications = {one.method: one for one in material(*samples, sample(), launches=launches).verifications}
    assert {method: (one.tree, one.verdict, one.seen) for method, one in verifications.items()} == {
        "linear": ("linear", "confirmed", "linear"),
        "pipeline:1000": ("chain", "contradicted", "linear"),
        "own-pipeline:8": ("chain", "confirmed", "chain"),
    }
    assert verifications["linear"].mpi == "openmpi" and verifications["linear"].ranks == 4
