"""The machines of the comparison of predictions with simulated exchanges."""

from bench.simgrid_exchanges import MACHINES, RANKS_PER_NODE


def test_every_machine_of_the_comparison_can_be_described():
    names = [machine.name for machine in MACHINES]
    assert len(set(names)) == len(names)
    for machine in MACHINES:
        described = machine.described()
        assert described.nodes == machine.nodes and described.cores == RANKS_PER_NODE
