"""libearlybird weighs messages by the formula of models/, of the costs that `exec --profile` hands over."""

import ctypes
import subprocess

import numpy as np
import pytest

from earlybird.data.message_costs import MAX_PROTOCOLS, costs_of_profile
from earlybird.data.profile import profile_from_json
from earlybird.models.message_cost import message_cost_s
from earlybird.toolchain.build import native_sources
from tests.core_library import compile_core, cost_of, predict_s


class Protocol(ctypes.Structure):
    _fields_ = (
        ("min_bytes", ctypes.c_int64),
        ("latency_s", ctypes.c_double),
        ("overhead_s", ctypes.c_double),
        ("bandwidth_bytes_per_s", ctypes.c_double),
    )


class Cost(ctypes.Structure):
    _fields_ = (("num", ctypes.c_int), ("protocols", Protocol * MAX_PROTOCOLS))


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """native/partitioned/segmentation/cost.c, which knows no MPI."""
    library = tmp_path_factory.mktemp("cost") / "cost.so"
    sources = native_sources()
    source = sources / "partitioned" / "segmentation" / "cost.c"
    command = [
        "cc",
        "-std=gnu11",
        "-D_GNU_SOURCE",
        "-shared",
        "-fPIC",
        f"-I{sources}",
        source,
        "-o",
        library,
        "-lm",
    ]
    subprocess.run(command, check=True, timeout=60)
    loaded = ctypes.CDLL(str(library))
    loaded.eb_cost_parse.restype = ctypes.c_bool
    loaded.eb_cost_time_s.restype = ctypes.c_double
    loaded.eb_cost_overhead_s.restype = ctypes.c_double
    return loaded


@pytest.mark.parametrize("num_protocols", [1, 3, MAX_PROTOCOLS])
def test_both_languages_agree_on_every_message(native, num_protocols):
    random = np.random.default_rng(num_protocols)
    starts = [0, *np.unique(random.integers(1, 1 << 50, num_protocols - 1)).tolist()]
    protocols = [
        {"min_bytes": start, "latency_s": latency, "bandwidth_bytes_per_s": {"1": bandwidth}}
        for start, latency, bandwidth in zip(
            starts, random.uniform(1e-8, 1e-3, num_protocols).tolist(),
            random.uniform(1e7, 1e11, num_protocols).tolist(), strict=True,
        )
    ]  # fmt: skip
    value = {"schema": "earlybird.profile/1", "levels": {"inter_node": {"protocols": protocols}}}
    costs = costs_of_profile(profile_from_json(value))
    text = costs.to_text().removeprefix("inter_node_protocols=").encode()
    cost = Cost()
    assert native.eb_cost_parse(text, len(text), ctypes.byref(cost))
    assert cost.num == num_protocols
    sizes = np.array([0, 1, 1 << 40, *starts, *(np.array(starts[1:], dtype=np.int64) - 1)], dtype=np.int64)
    lines = costs.networks["inter_node"]
    expected = message_cost_s(
        sizes,
        [line.min_bytes for line in lines],
        [line.latency_s for line in lines],
        [line.bandwidth_bytes_per_s for line in lines],
    )
    found = [native.eb_cost_time_s(ctypes.byref(cost), ctypes.c_int64(int(size))) for size in sizes]
    assert found == pytest.approx(expected, rel=1e-8)
    overhead_s = native.eb_cost_overhead_s(ctypes.byref(cost), ctypes.c_int64(0))
    assert overhead_s == pytest.approx(lines[0].overhead_s, rel=1e-8)


ONE = "0:1e-6:0:1e9"
REFUSED = {
    "empty": "",
    "half a byte": f"{ONE},0.5:1e-6:0:1e9",
    "below 0": "-0.5:1e-6:0:1e9",
    "a byte and a half": f"{ONE},64.5:1e-6:0:1e9",
    "first protocol not from 0": "1:1e-6:0:1e9",
    "two from 0": f"{ONE},{ONE}",
    "descending": f"{ONE},64:1e-6:0:1e9,32:1e-6:0:1e9",
    "larger than a size": f"{ONE},9e18:1e-6:0:1e9",
    "negative overhead": "0:1e-6:-1e-9:1e9",
    "no bandwidth": "0:1e-6:0:0",
    "infinite": "0:inf:0:1e9",
    "no number": "0:1e-6::1e9",
    "too many": ",".join(f"{start}:1e-6:0:1e9" for start in range(MAX_PROTOCOLS + 1)),
    "another separator": f"{ONE};64:1e-6:0:1e9",
    "too long": ONE.rjust(1024, "0"),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_text_that_is_no_list_of_protocols_is_refused_and_changes_nothing(native, text):
    cost = Cost(num=7)
    assert not native.eb_cost_parse(text.encode(), len(text), ctypes.byref(cost))
    assert cost.num == 7


def test_the_limits_of_the_text_are_accepted(native):
    for text in ("0:-1e-6:0:1e9", "0:1e-6:0:1e-9", f"{ONE},1:1e-6:0:1e9,8999999999999998976:1e-6:0:1e9"):
        assert native.eb_cost_parse(text.encode(), len(text), ctypes.byref(Cost()))
    longest = ONE.rjust(1023, "0")
    assert native.eb_cost_parse(longest.encode(), len(longest), ctypes.byref(Cost()))


def test_without_protocols_nothing_costs_anything(native):
    native.eb_cost_bandwidth_bytes_per_s.restype = ctypes.c_double
    none = ctypes.byref(Cost(num=0))
    assert native.eb_cost_time_s(none, ctypes.c_int64(1 << 40)) == 0
    assert native.eb_cost_overhead_s(none, ctypes.c_int64(1)) == 0
    assert native.eb_cost_bandwidth_bytes_per_s(none) == np.inf


def test_a_train_takes_its_last_message_and_what_each_other_keeps_it_back(tmp_path):
    """Also where a message of a train takes longer than a lone one: trains of 16 MiB leave the caches."""
    core = compile_core(tmp_path)
    for overhead_s in (1e-7, 1e-5):
        cost = cost_of([(0, 1e-6, overhead_s, 1e9)])
        alone_s, further_s = 1e-6 + 1e-6, 1.2 * overhead_s + 1e-6
        for num in (1, 2, 8):
            predicted_s = predict_s(core, cost, [0.0] * num, [1000] * num)
            assert predicted_s == pytest.approx(alone_s + (num - 1) * further_s)
