"""Files that place ranks: every launcher's form, and the order in which ranks are renumbered."""

import numpy as np
import pytest

from earlybird.data.errors import InputError
from earlybird.data.layout import Layout, parse_layout
from earlybird.launch.host_files import parse_cpus, placement_file

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


# Rank 0 and 2 on b, 1 and 3 on a: of b on sockets 0 and 1, of a on 1 and 0.
CPUS = [[0, 2], [1, 3]]
SAME = Layout.from_arrays([1, 0, 1, 0], [0, 0, 1, 1])


def bound(target, layout, cpus=CPUS):
    made = placement_file(layout, target, ["a", "b"], cpus)
    return made.text.splitlines(), made.use, made.binding


def test_one_list_binds_the_ranks_of_nodes_that_are_alike():
    """The k-th rank of a node gets the k-th CPU."""
    files = (["b:2", "a:2"], ["b:1", "a:1"] * 2, ["b", "a"] * 2)
    uses = (
        "mpiexec -n {ranks} -f {file} -rankmap 0,1,0,1 -bind-to user:0,1 PROGRAM",
        "mpiexec -genv I_MPI_PIN_PROCESSOR_LIST 0,1 -n {ranks} -machinefile {file} PROGRAM",
        "SLURM_HOSTFILE={file} srun -n {ranks} --distribution=arbitrary --cpu-bind=map_cpu:0,1 PROGRAM",
    )
    for target, text, use in zip(("mpich", "intel", "slurm"), files, uses, strict=True):
        assert bound(target, SAME) == (text, use, "")


def test_nodes_that_differ_have_lists_of_their_own_where_the_launcher_takes_them():
    text, use, remark = bound("mpich", SCATTERED)
    assert text == ["b:2 binding=user:0,1", "a:2 binding=user:1,0"]
    assert "-bind-to" not in use and not remark
    text, use, remark = bound("intel", SCATTERED)
    assert text == [
        f"-host {host} -n 1 -env I_MPI_PIN_PROCESSOR_LIST {cpus} PROGRAM"
        for host, cpus in (("b", "0,1"), ("a", "1,0"), ("b", "0,1"), ("a", "1,0"))
    ]
    assert use.startswith("mpiexec -configfile {file}, after") and not remark
    text, use, remark = bound("slurm", SCATTERED)
    assert text == ["b", "a", "b", "a"] and "--cpu-bind" not in use
    assert "one list for all nodes" in remark


def test_nodes_with_fewer_ranks_take_the_beginning_of_the_list_but_not_with_intel():
    """Intel MPI spreads a list that is longer than the ranks of a node over them."""
    uneven = Layout.from_arrays([0, 0, 1], [0, 1, 0])
    assert "-bind-to user:0,1 " in bound("mpich", uneven)[1]
    assert "--cpu-bind=map_cpu:0,1 " in bound("slurm", uneven)[1]
    assert bound("intel", uneven)[0][-1] == "-host b -n 1 -env I_MPI_PIN_PROCESSOR_LIST 0 PROGRAM"


def test_without_cpus_slurm_counts_numa_domains_and_others_say_what_is_missing():
    assert "--cpu-bind=map_ldom:0,1 PROGRAM" in bound("slurm", SAME, None)[1]
    assert "NUMA domains" in bound("slurm", SAME, None)[2]
    for target in ("mpich", "intel"):
        assert "give --cpus, the CPUs of each socket as lscpu lists them" in bound(target, SAME, None)[2]
        assert not bound(target, parse_layout("2x1x2"), None)[2]
    assert "--cpu-bind" not in bound("slurm", parse_layout("2x1x2"), None)[1]


def test_cpus_are_read_as_lscpu_lists_them():
    assert parse_cpus("0-2,8/3,5-6") == [[0, 1, 2, 8], [3, 5, 6]]
    for wrong in ("", "0-3/", "3-1", "0,a", "0/1-2/"):
        with pytest.raises(InputError, match="as lscpu lists them"):
            parse_cpus(wrong)
    with pytest.raises(InputError, match="has a CPU twice"):
        parse_cpus("0-3/3-5")


@pytest.mark.parametrize(
    ("layout", "cpus", "sentence"),
    [
        ("2x2x2", [[0, 1]], "a rank on socket 1 of a, counted from 0, but --cpus lists 1 socket;"),
        ("2x1x3", [[0, 1]], "more ranks on socket 0 of a than --cpus lists CPUs, 2;"),
    ],
)
def test_cpus_that_do_not_suffice_are_refused(layout, cpus, sentence):
    with pytest.raises(InputError, match=sentence):
        placement_file(parse_layout(layout), "mpich", ["a", "b"], cpus)


def test_lines_that_mpich_would_cut_are_refused():
    ranks = 300
    layout = Layout.from_arrays([0] * ranks + [1] * ranks, [0, 1] * (ranks // 2) + [1, 0] * (ranks // 2))
    with pytest.raises(InputError, match="of which MPICH reads 1023"):
        placement_file(layout, "mpich", ["a", "b"], [range(100, 300), range(300, 500)])
