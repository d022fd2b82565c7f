"""The report draws the times of a profile's models only for the pipelines that they describe."""

import numpy as np
import pytest

from earlybird.data.profile import profile_from_json
from earlybird.data.run import Sample
from earlybird.present.fitted import with_pipelines
from earlybird.present.material import Material, MeasuredRun

LEVEL = {"protocols": [{"latency_s": 2e-6, "bandwidth_bytes_per_s": {"1": 1e9}}]}


def profile(overhead_s=1e-6, run_id="other"):
    protocol = {"latency_s": 1e-6, "overhead_s": overhead_s, "bandwidth_bytes_per_s": 1e9}
    form = {
        "what": {"operation": "pipeline", "method": "many", "level": "intra_socket", "threads": 2},
        "form": "joined",
        "parameters": {"messages": "each", "protocols": [protocol]},
        "range": {"size_bytes": [64, 1 << 20], "partitions": [1, 16], "gamma_s_per_byte": [0, 1.0]},
    }
    return profile_from_json(
        {"schema": "earlybird.profile/1", "context": {"flavour": "mpich"}, "runs": [{"id": run_id}],
         "levels": {"intra_socket": LEVEL}, "forms": [form]}
    )  # fmt: skip


def sample(method="many", **config):
    common = {"mpi": "mpich", "level": "intra_socket", "size_bytes": 4000, "partitions": 4, "threads": 2,
              "gamma_s_per_byte": 0.0}  # fmt: skip
    return Sample("pipeline", "time_to_solution", common | config, "0", np.ones(3), method=method)


def fitted(*samples, profiles=()):
    run = MeasuredRun("run", {"id": "mine"}, (), samples)
    material = Material(runs=(run,), profiles=profiles or (profile(),))
    return with_pipelines(material).fitted_pipelines


def test_times_are_given_for_the_fitted_method_level_and_threads():
    early, late = sample(), sample(gamma_s_per_byte=1.0)
    assert fitted(early, late) == {
        early.point(): pytest.approx(4 * 2e-6 + 1e-6),
        # Only the last message, of 1000 bytes: the others have left.
        late.point(): pytest.approx(2e-6 + 1e-6),
    }


@pytest.mark.parametrize(
    "other",
    [{"threads": 4}, {"vcis": 4}, {"level": "inter_node"}, {"mpi": "openmpi"}, {"method": "single"},
     {"compute_s_per_byte": 1e-9, "epsilon": 0.1, "delta": 0.0}],
)  # fmt: skip
def test_no_time_is_given_for_what_was_not_fitted(other):
    assert fitted(sample(**other)) == {}


def test_the_profile_fitted_to_the_run_is_preferred():
    both = (profile(1.0), profile(1e-6, run_id="mine"))
    assert list(fitted(sample(), profiles=both).values()) == [pytest.approx(9e-6)]
