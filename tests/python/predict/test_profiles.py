"""Several profiles become one."""

import pytest

from earlybird.data.errors import InputError
from earlybird.data.profile import profile_from_json
from earlybird.predict import merge_profiles


def _profile(name, level, replicates=0, latency_s=1e-6):
    def levels(latency_s):
        return {level: {"protocols": [{"latency_s": latency_s, "bandwidth_bytes_per_s": {"1": 1e9}}]}}

    return profile_from_json(
        {
            "schema": "earlybird.profile/1",
            "id": name,
            "levels": levels(latency_s),
            "replicates": [{"levels": levels(latency_s * (k + 2))} for k in range(replicates)],
        }
    )


def test_levels_of_all_profiles_are_there():
    merged = merge_profiles([_profile("a", "intra_socket"), _profile("b", "inter_node")])
    assert (sorted(merged.levels), merged.id) == (["inter_node", "intra_socket"], "a+b")


def test_one_profile_stays_itself():
    profile = _profile("a", "intra_socket", replicates=2)
    assert merge_profiles([profile]) is profile


def test_the_same_level_twice_is_refused():
    with pytest.raises(InputError, match="two of the given profiles have the level intra_socket"):
        merge_profiles([_profile("a", "intra_socket"), _profile("b", "intra_socket")])


def test_replicates_are_joined_one_by_one():
    merged = merge_profiles([_profile("a", "intra_socket", 3), _profile("b", "inter_node", 2)])
    assert [sorted(item.levels) for item in merged.replicates] == [["inter_node", "intra_socket"]] * 2


def test_a_profile_without_replicates_keeps_its_fitted_level_in_each():
    merged = merge_profiles([_profile("a", "intra_socket", 2), _profile("b", "inter_node", latency_s=7e-6)])
    assert [item.levels["inter_node"].protocols[0].latency_s for item in merged.replicates] == [7e-6] * 2
