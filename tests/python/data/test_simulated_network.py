"""Fat trees and dragonflies: minimal routes over links that exist, spread over them, and refusals."""

import itertools
import json
from collections import Counter

import pytest

from earlybird.data.errors import InputError
from earlybird.data.simulated_machine import SCHEMA, parse_simulated_machine
from earlybird.data.simulated_network import Dragonfly, FatTree


@pytest.fixture
def machine(tmp_path):
    def read(**keys):
        path = tmp_path / "machine.json"
        path.write_text(json.dumps({"schema": SCHEMA, "nodes": 8, "sockets": 1, "cores": 1} | keys))
        return parse_simulated_machine(str(path))

    return read


def hops(network, src, dst):
    return [(hop.link, "up" if hop.up else "down") for hop in network.route(src, dst)]


def test_a_fat_tree_goes_up_and_down_over_the_spine_of_the_destination():
    tree = FatTree(nodes_per_leaf=4, uplinks_per_leaf=2)
    assert hops(tree, 0, 3) == []
    assert hops(tree, 0, 5) == [("leaf0-spine1", "up"), ("leaf1-spine1", "down")]
    assert hops(tree, 5, 0) == [("leaf1-spine0", "up"), ("leaf0-spine0", "down")]


def test_in_a_full_fat_tree_only_messages_to_one_node_share_a_link_down():
    tree = FatTree(nodes_per_leaf=4, uplinks_per_leaf=4)
    receivers = {}
    for src, dst in itertools.permutations(range(16), 2):
        for hop in tree.route(src, dst):
            if not hop.up:
                receivers.setdefault(hop.link, set()).add(dst)
    assert len(receivers) == 16 and all(len(nodes) == 1 for nodes in receivers.values())


def test_a_dragonfly_takes_at_most_a_local_a_global_and_a_local_link():
    fly = Dragonfly(groups=2, routers_per_group=2, nodes_per_router=2, links_between_groups=2)
    assert hops(fly, 0, 1) == []
    assert hops(fly, 0, 2) == [("group0-router0-router1", "up")]
    assert hops(fly, 2, 0) == [("group0-router0-router1", "down")]
    # Link 1 begins and ends at the second router of its groups, link 0 at the first.
    to_5 = [
        ("group0-router0-router1", "up"),
        ("group0-group1-link1", "up"),
        ("group1-router0-router1", "down"),
    ]
    assert hops(fly, 0, 5) == to_5
    assert hops(fly, 4, 0) == [("group0-group1-link0", "down")]


@pytest.mark.parametrize(
    ("network", "nodes"),
    [(FatTree(4, 3), 16), (Dragonfly(4, 4, 4, 8), 64), (Dragonfly(5, 3, 1, 2), 15), (Dragonfly(1, 4, 2), 8)],
)
def test_every_route_starts_and_ends_at_its_nodes(network, nodes):
    """Walk each route: a hop must begin at the switch where the message is."""
    network.check(nodes)
    names = [link.name for link in network.links(nodes)]
    assert len(set(names)) == len(names)
    used = Counter()
    for src, dst in itertools.permutations(range(nodes), 2):
        here = switch_of(network, src)
        for hop in network.route(src, dst):
            used[hop.link, hop.up] += 1
            start, end = ends(network, hop.link) if hop.up else reversed(ends(network, hop.link))
            assert here == start
            here = end
        assert here == switch_of(network, dst)
    assert {link for link, _ in used} <= set(names)
    if isinstance(network, Dragonfly) and network.groups > 1:
        between = Counter(link for link, _ in used.elements() if "link" in link)
        assert len(between) == network.groups * (network.groups - 1) // 2 * network.links_between_groups


def switch_of(network, node):
    if isinstance(network, FatTree):
        return "leaf", node // network.nodes_per_leaf
    router = node // network.nodes_per_router
    return router // network.routers_per_group, router % network.routers_per_group


def ends(network, link):
    """Both switches of a link, by its name and the attachment that the documentation gives."""
    first, second, *rest = (int("".join(filter(str.isdigit, part))) for part in link.split("-"))
    if isinstance(network, FatTree):
        return [("leaf", first), ("spine", second)]
    if "router" in link:
        return [(first, second), (first, rest[0])]
    groups, routers, parallel = network.groups, network.routers_per_group, network.links_between_groups
    return [
        (first, ((second - first - 1) % groups * parallel + rest[0]) % routers),
        (second, ((first - second - 1) % groups * parallel + rest[0]) % routers),
    ]


def test_a_file_gives_the_network_and_only_then_it_is_part_of_the_machine(machine):
    with_tree = machine(fat_tree={"nodes_per_leaf": 4, "uplinks_per_leaf": 2})
    assert with_tree.network == FatTree(4, 2)
    assert with_tree.describe() != machine().describe()
    assert machine().network is None and not {"fat_tree", "dragonfly"} & machine().to_json().keys()


TREE = {"nodes_per_leaf": 4, "uplinks_per_leaf": 4}
FLY = {"groups": 2, "routers_per_group": 2, "nodes_per_router": 2}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"fat_tree": TREE | {"nodes_per_leaf": 3}}, "3 nodes per leaf switch.*8 nodes; give a divisor"),
        ({"fat_tree": TREE | {"uplinks_per_leaf": 0}}, "fat_tree.uplinks_per_leaf is 0; give a whole"),
        ({"fat_tree": TREE | {"bandwidth_bytes_per_s": 0}}, "bandwidth_bytes_per_s is 0; give a number >="),
        ({"fat_tree": {"nodes_per_leaf": 4}}, "has no 'uplinks_per_leaf'"),
        ({"fat_tree": TREE | {"levels": 3}}, "it has the key 'levels'; the keys are nodes_per_leaf"),
        ({"dragonfly": FLY | {"groups": 3}}, "which is 12, and the machine has 8 nodes; give numbers"),
        ({"dragonfly": FLY | {"hop_latency_s": -1}}, "hop_latency_s is -1; give a number >= 0"),
        ({"dragonfly": "big"}, "dragonfly is 'big'"),
        ({"dragonfly": FLY, "fat_tree": TREE}, "both a fat_tree and a dragonfly; give one"),
    ],
)  # fmt: skip
def test_a_network_that_does_not_fit_is_refused(machine, keys, message):
    with pytest.raises(InputError, match=message):
        machine(**keys)
