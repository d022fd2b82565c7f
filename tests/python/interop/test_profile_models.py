"""Profiles as simulated machines and LogGPS parameters."""

import json
from dataclasses import replace

import pytest

from earlybird.data.errors import InputError
from earlybird.data.profile import Level, Profile, Protocol
from earlybird.data.simulated_machine import LevelCost, parse_simulated_machine
from earlybird.interop.profile_models import changed_costs, loggps, simulated_machine

INSIDE = (
    Protocol(name="eager", latency_s=1e-6, bandwidth_bytes_per_s={1: 2e9}),
    Protocol(min_bytes=8192, latency_s=3e-6, bandwidth_bytes_per_s={1: 5e9, 4: 2e10}),
)
OUTSIDE = (Protocol(name="eager", latency_s=2e-6, bandwidth_bytes_per_s={1: 1e10, 2: 1.2e10}),)
PROFILE = Profile({"intra_socket": Level("intra_socket", INSIDE), "inter_node": Level("inter_node", OUTSIDE)})


def test_a_machine_has_the_costs_of_the_profile_and_no_level_is_faster_than_a_core():
    machine = simulated_machine(PROFILE, 4, 2, 16)
    assert machine.shape == "4x2x16"
    assert machine.levels["intra_socket"].bandwidth_bytes_per_s == 5e9
    assert machine.levels["inter_socket"] == machine.levels["intra_socket"]
    assert machine.levels["inter_node"].latency_s == 2e-6
    assert machine.levels["inter_node"].bandwidth_bytes_per_s == 5e9
    assert machine.nic_bandwidth_bytes_per_s == 1.2e10 and machine.socket_bandwidth_bytes_per_s == 2e10


def test_a_level_between_nodes_may_be_faster_than_one_across_sockets():
    def level(name, latency_s, bandwidth):
        return Level(name, (Protocol(latency_s=latency_s, bandwidth_bytes_per_s={1: bandwidth}),))

    levels = [
        level("intra_socket", 3e-7, 12e9),
        level("inter_socket", 7e-7, 5e9),
        level("inter_node", 6e-7, 10e9),
    ]
    profile = Profile({one.name: one for one in levels})
    machine = simulated_machine(profile, 2, 2, 2)
    assert [one.bandwidth_bytes_per_s for one in machine.levels.values()] == [12e9, 5e9, 10e9]
    assert changed_costs(profile, machine) == [
        "between nodes: the latency is 700 ns and not 600 ns, because it is at least that of the levels "
        "inside"
    ]
    (changed,) = changed_costs(PROFILE, simulated_machine(PROFILE, 4, 1, 16))
    assert changed.startswith("between nodes: the bandwidth is 5 GB/s and not 10 GB/s")


def test_loggps_has_a_latency_and_a_gap_per_byte_for_each_level():
    found = loggps(PROFILE)
    assert found["intra_socket"] == {
        "L_s": 1e-6, "o_s": 0.0, "g_s": 0.0, "G_s_per_byte": pytest.approx(2e-10), "S_bytes": 8192
    }  # fmt: skip
    assert found["inter_node"]["S_bytes"] is None and "inter_socket" not in found


def test_ping_pongs_give_the_cost_of_one_message_and_latencies_what_occupies_a_rank():
    def form(level, latency_s, bandwidth):
        line = {"min_bytes": 0, "latency_s": 9.0, "bandwidth_bytes_per_s": bandwidth}
        return {
            "what": {"operation": "pingpong", "level": level}, "form": "piecewise_postal",
            "parameters": {"protocols": [line | {"latency_s": latency_s}, line | {"min_bytes": 4096}]},
        }  # fmt: skip

    broken = {"what": {"operation": "pingpong", "level": "inter_node"}, "form": "piecewise_postal"}
    profile = replace(PROFILE, forms=(form("intra_socket", 4e-6, 3e9), broken, form("inter_node", 7e-6, 2e9)))
    machine = simulated_machine(profile, 2, 1, 2)
    assert machine.levels["intra_socket"] == LevelCost(4e-6, 3e9)
    assert machine.levels["inter_node"] == LevelCost(7e-6, 2e9)
    assert machine.send_overhead_s == machine.receive_overhead_s == 0.5e-6  # two are the latency
    assert machine.nic_bandwidth_bytes_per_s == 1.2e10
    assert changed_costs(profile, machine) == []
    between = loggps(profile)["inter_node"]
    assert between["o_s"] == 1e-6 and between["L_s"] == pytest.approx(5e-6)


def test_what_occupies_the_ranks_is_the_least_latency_of_a_machine():
    line = {"min_bytes": 0, "latency_s": 4e-7, "bandwidth_bytes_per_s": 5e9}
    form = {"what": {"operation": "pingpong", "level": "intra_socket"}, "form": "piecewise_postal",
            "parameters": {"protocols": [line]}}  # fmt: skip
    profile = replace(PROFILE, forms=(form,))
    machine = simulated_machine(profile, 1, 1, 2)
    assert changed_costs(profile, machine)[0] == (
        "same socket: the latency is 1 us and not 400 ns, because a message occupies its ranks so long"
    )


def test_what_a_simulator_cannot_take_is_refused():
    free = Profile(
        {"intra_socket": Level("intra_socket", (Protocol(latency_s=0.0, bandwidth_bytes_per_s={1: 1e9}),))}
    )
    with pytest.raises(InputError, match="latency on the same socket is 0"):
        simulated_machine(free, 1, 1, 4)
    with pytest.raises(InputError, match="no level inter_node"):
        simulated_machine(free, 2, 1, 4)
    with pytest.raises(InputError, match="more than 10000000 cores"):
        simulated_machine(PROFILE, 99999, 99999, 9)
    pair_missing = Protocol(latency_s=1e-6, bandwidth_bytes_per_s={4: 1e9})
    with pytest.raises(InputError, match="no bandwidth for N = 1"):
        loggps(Profile({"intra_socket": Level("intra_socket", (pair_missing,))}))


def test_the_command_writes_what_the_launcher_and_simgrid_read(tmp_path, in_process):
    profile, machine = tmp_path / "profile.json", tmp_path / "machine.json"
    PROFILE.save(profile)
    in_process("export", profile, "--to", "simulated-machine", "--shape", "4x2x16", "-o", machine)
    assert parse_simulated_machine(str(machine)).to_json() == simulated_machine(PROFILE, 4, 2, 16).to_json()
    platform = tmp_path / "platform.xml"
    in_process("export", profile, "--to", "simgrid-platform", "--shape", "2x1x2", "-o", platform)
    assert 'id="node1-nic"' in platform.read_text()
    in_process("export", profile, "--to", "loggps", "-o", tmp_path / "loggps.json")
    assert json.loads((tmp_path / "loggps.json").read_text())["levels"]["inter_node"]["L_s"] == 2e-6
    refused = in_process("export", profile, "--to", "simgrid-platform", "-o", machine, check=False)
    assert refused.returncode == 2 and "--shape is missing" in refused.stderr


def test_a_level_that_was_not_measured_is_named():
    (said,) = [
        text for text in changed_costs(PROFILE, simulated_machine(PROFILE, 1, 2, 4)) if "across" in text
    ]
    assert said == (
        "across sockets: the profile has no such messages; here they cost what those on the same socket do"
    )
    assert not any("across" in text for text in changed_costs(PROFILE, simulated_machine(PROFILE, 2, 1, 4)))
