"""Files that place ranks: every launcher's form, and the order in which ranks are renumbered."""

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, parse_layout
from earlybird.launch.host_files import placement_file

SCATTERED = Layout.from_arrays([1, 0, 1, 0], [0, 1, 1, 0])


def lines(target, layout=SCATTERED, hosts=("a", "b")):
    return placement_file(layout, target, hosts).text.splitlines()


def test_every_launcher_gets_a_line_for_each_rank_in_order():
    assert lines("intel") == ["b:1", "a:1", "b:1", "a:1"]
    assert lines("slurm") == ["b", "a", "b", "a"]
    assert lines("openmpi") == [
        "rank 0=b slot=0:0", "rank 1=a slot=1:0", "rank 2=b slot=1:0", "rank 3=a slot=0:0"
    ]  # fmt: skip
    assert lines("openmpi", parse_layout("1x1x2"), ["a"]) == ["rank 0=a slot=0:0", "rank 1=a slot=0:1"]


@pytest.mark.parametrize(
    ("nodes", "text", "arguments"),
    [
        ([1, 0, 1, 0], "b:2\na:2\n", "-f {file} -rankmap 0,1,0,1 PROGRAM"),
        ([1, 1, 0, 0], "b:2\na:2\n", "-f {file} PROGRAM"),
        ([0, 0, 1, 0], "a:3\nb:1\n", "-f {file} -rankmap 0,0,1,0 PROGRAM"),
    ],
)
def test_mpich_gets_each_host_once_and_a_map_where_ranks_do_not_follow_one_another(nodes, text, arguments):
    """Ranks of one host on several lines would share no memory."""
    made = placement_file(Layout.from_arrays(nodes), "mpich", ["a", "b"])
    assert (made.text, made.use) == (text, f"mpiexec -n {{ranks}} {arguments}")


def test_nodes_may_have_any_numbers():
    assert lines("slurm", Layout.from_arrays([7, 3, 7]), ["a", "b"]) == ["b", "a", "b"]


def test_the_rank_order_makes_the_layout_of_a_job_that_fills_its_nodes():
    key = np.array(lines("rank-order", hosts=()), dtype=int)
    launched = parse_layout("2x2x1")
    # MPI_Comm_split sorts by key: rank k of the new communicator is the process whose key is k.
    process = np.argsort(key, kind="stable")
    assert launched.node[process].tolist() == SCATTERED.node.tolist()
    assert launched.socket[process].tolist() == SCATTERED.socket.tolist()


@pytest.mark.parametrize("hosts", [["a"], ["a", "b", "c"], ["a", "a"], ["node[1-2"]])
def test_hosts_that_are_not_one_for_each_node_are_refused(hosts):
    with pytest.raises(InputError, match="--hosts"):
        placement_file(SCATTERED, "mpich", hosts)
