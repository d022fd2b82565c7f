"""Ranks of a simulated machine: which core each has, and the platform whose routes cost what was asked."""

import dataclasses
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import parse_layout
from earlybird.data.simulated_machine import parse_simulated_machine
from earlybird.data.simulated_network import Dragonfly, FatTree
from earlybird.launch.launcher import Request
from earlybird.launch.simgrid import SimgridLauncher, cores_of_ranks, platform_xml
from earlybird.machine.flavours import Flavour

MACHINE = parse_simulated_machine("2x2x4")


@pytest.mark.parametrize(
    ("map_by", "first"),
    [
        ("core", ["node0-socket0-core0", "node0-socket0-core1"]),
        ("socket", ["node0-socket0-core0", "node0-socket1-core0"]),
        ("node", ["node0-socket0-core0", "node1-socket0-core0"]),
    ],
)
def test_ranks_fill_cores_as_the_layout_says_and_share_none(map_by, first):
    cores = cores_of_ranks(parse_layout("2x2x4", map_by), MACHINE)
    assert cores[:2] == first
    assert max(Counter(cores).values()) == 1 and len(cores) == 16


@pytest.mark.parametrize(("layout", "what"), [("3x1x1", "nodes"), ("1x3x1", "sockets"), ("1x1x5", "cores")])
def test_a_layout_that_the_machine_is_too_small_for_is_refused(layout, what):
    with pytest.raises(InputError, match=rf"needs \d {what}.*give"):
        cores_of_ranks(parse_layout(layout), MACHINE)


def test_a_simulation_that_takes_long_is_not_only_called_hung(monkeypatch, tmp_path):
    smpirun = tmp_path / "smpirun"
    smpirun.write_text("#!/bin/sh\nexec sleep 60\n")
    smpirun.chmod(0o755)
    monkeypatch.setattr("earlybird.launch.job.kernel_path", lambda mpi, kernel: Path("/bin/true"))
    simulated = Flavour("simgrid", "simgrid", "4.0", smpirun, smpirun)
    request = Request("0", "pingpong", [], parse_layout("1x1x2"), stall_limit_s=0.3)
    launched = SimgridLauncher(simulated, MACHINE).launch(request, tmp_path, lambda *heard: None)
    assert launched.cause == (
        "no point was finished for 0.3 s: a rank hangs or died, or the simulation takes longer: "
        "give a larger --stall-limit"
    )


def test_the_links_of_a_route_add_up_to_the_latency_of_its_level():
    root = ET.fromstring(platform_xml(MACHINE).split("\n", 2)[2])
    latencies_s = {link.get("id"): float(link.get("latency")[:-1]) for link in root.iter("link")}
    clusters = list(root.iter("cluster"))
    assert len(clusters) == 4 and {cluster.get("radical") for cluster in clusters} == {"0-3"}
    own_s = float(clusters[0].get("lat")[:-1])
    inside_s = 2 * own_s + MACHINE.overheads_s
    levels = MACHINE.levels
    assert inside_s == pytest.approx(levels["intra_socket"].latency_s)
    assert inside_s + latencies_s["node0-message"] == pytest.approx(levels["inter_socket"].latency_s)
    assert inside_s + latencies_s["between-nodes"] == pytest.approx(levels["inter_node"].latency_s)


def test_every_pair_of_sockets_and_of_nodes_has_a_route():
    root = ET.fromstring(platform_xml(parse_simulated_machine("3x4x1")).split("\n", 2)[2])
    routes = Counter((route.get("src"), route.get("dst")) for route in root.iter("zoneRoute"))
    assert max(routes.values()) == 1
    assert len(routes) == 3 + 3 * (6 + 4)  # between nodes; in each between sockets, and to its edge


def test_routes_between_nodes_pass_the_switches_in_their_direction():
    tree = FatTree(nodes_per_leaf=2, uplinks_per_leaf=2, bandwidth_bytes_per_s=5e9, hop_latency_s=1e-7)
    machine = dataclasses.replace(parse_simulated_machine("4x1x1"), fat_tree=tree)
    root = ET.fromstring(platform_xml(machine).split("\n", 2)[2])
    links = {link.get("id"): link for link in root.iter("link")}
    uplink = links["leaf1-spine0"]
    assert (uplink.get("bandwidth"), uplink.get("latency")) == ("5000000000Bps", "1e-07s")
    assert uplink.get("sharing_policy") == "SPLITDUPLEX"
    routes = {
        (route.get("src"), route.get("dst")): [(hop.get("id"), hop.get("direction")) for hop in route]
        for route in root.find("zone").findall("zoneRoute")
    }
    assert len(routes) == 4 * 3
    assert routes["node0", "node1"] == [("between-nodes", None)]
    assert routes["node0", "node2"][1:] == [("leaf0-spine0", "UP"), ("leaf1-spine0", "DOWN")]
    assert routes["node2", "node1"][1:] == [("leaf1-spine1", "UP"), ("leaf0-spine1", "DOWN")]


def test_links_between_switches_are_as_fast_as_nics_unless_given():
    fly = Dragonfly(groups=2, routers_per_group=2, nodes_per_router=1, global_bandwidth_bytes_per_s=1e9)
    machine = dataclasses.replace(parse_simulated_machine("4x1x1"), dragonfly=fly)
    root = ET.fromstring(platform_xml(machine).split("\n", 2)[2])
    speed = {link.get("id"): link.get("bandwidth") for link in root.iter("link")}
    assert speed["group0-router0-router1"] == f"{machine.nic_bandwidth_bytes_per_s:.12g}Bps"
    assert speed["group0-group1-link0"] == "1000000000Bps"
