"""What each family of mpiexec is told."""

from pathlib import Path

import pytest

from earlybird.data.errors import InputError
from earlybird.launch.local import parse_hosts
from earlybird.launch.mpiexec import invocation
from earlybird.launch.placement import Binding
from earlybird.machine.flavours import Flavour

BY_MPI = Binding("core, by the MPI", None)


def told(family, folder, cpus=None, *, oversubscribed=False, hosts=(), num_ranks=2):
    flavour = Flavour(family, family, "1", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))
    binding = BY_MPI if cpus is None else Binding("core", cpus)
    result = invocation(flavour, num_ranks, binding, folder, oversubscribed=oversubscribed, hosts=hosts)
    assert result.words[:3] == ("/mpi/bin/mpiexec", "-n", str(num_ranks))
    return list(result.words[3:]), result.env


def test_ranks_are_bound_to_the_cores_of_a_list(tmp_path):
    assert told("mpich", tmp_path, (3, 1)) == (["-bind-to", "user:3,1"], {})
    words, _ = told("openmpi", tmp_path, (3, 1))
    assert words == ["--map-by", "pe-list=3,1:ordered", "--bind-to", "core"]
    words, env = told("intel", tmp_path, (3, 1))
    assert words == []
    assert (env["I_MPI_PIN"], env["I_MPI_PIN_DOMAIN"]) == ("1", "[0x8,0x2]")


def test_masks_reach_beyond_64_cpus(tmp_path):
    _, env = told("intel", tmp_path, (0, 100))
    assert env["I_MPI_PIN_DOMAIN"] == f"[0x1,0x1{'0' * 25}]"


def test_waiting_ranks_yield_when_cores_are_shared(tmp_path):
    _, env = told("mpich", tmp_path, (0, 0), oversubscribed=True)
    assert env == {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    words, env = told("openmpi", tmp_path, (0, 0), oversubscribed=True)
    assert words == ["--map-by", "pe-list=0,0:ordered:OVERSUBSCRIBE", "--bind-to", "core:overload-allowed"]
    assert env == {"OMPI_MCA_mpi_yield_when_idle": "1"}
    _, env = told("intel", tmp_path, (0, 0), oversubscribed=True)
    assert env["I_MPI_THREAD_YIELD"] == "2"


def test_a_path_with_a_colon_reaches_no_list_that_colons_divide(tmp_path):
    folder = tmp_path / "run 12:30,a"
    folder.mkdir()
    words, _ = told("openmpi", folder, (0, 1))
    assert not any("12:30" in word for word in words)


@pytest.mark.parametrize(
    ("family", "option", "lines"),
    [
        ("mpich", "-f", "b:1\na:1\nb:1\n"),
        ("intel", "-f", "b:1\na:1\nb:1\n"),
        ("openmpi", "--hostfile", "b\na\nb\n"),
    ],
)
def test_hosts_are_given_rank_by_rank(tmp_path, family, option, lines):
    words, env = told(family, tmp_path, hosts=["b", "a", "b"], num_ranks=3)
    assert words[:2] == [option, str(tmp_path / "hosts.txt")]
    assert (tmp_path / "hosts.txt").read_text() == lines
    if family == "mpich":
        assert words[2:] == ["-bind-to", "core"]
    if family == "openmpi":
        assert words[2:] == ["--map-by", "seq", "--bind-to", "core"]
    if family == "intel":
        assert env["I_MPI_PIN_DOMAIN"] == "core"


def test_shared_memory_alone_is_asked_for_on_one_machine_only(tmp_path):
    assert told("intel", tmp_path, (0, 1))[1]["I_MPI_FABRICS"] == "shm"
    assert "I_MPI_FABRICS" not in told("intel", tmp_path, hosts=["a", "b"])[1]


def test_open_mpi_binds_nothing_when_hosts_are_oversubscribed(tmp_path):
    words, _ = told("openmpi", tmp_path, hosts=["a", "a"], oversubscribed=True)
    assert words[2:] == ["--map-by", "seq:OVERSUBSCRIBE", "--bind-to", "none"]


def test_hosts_come_as_a_list_or_a_file(tmp_path):
    assert parse_hosts("node1, node2") == ("node1", "node2")
    path = tmp_path / "hosts"
    path.write_text("# comment\nnode1 slots=4\n\nnode2:8  # the other\n")
    assert parse_hosts(str(path)) == ("node1", "node2")


@pytest.mark.parametrize("text", ["", ",", "a b", "-f", "node1;reboot"])
def test_what_is_no_host_is_refused(text):
    with pytest.raises(InputError, match="--hosts is"):
        parse_hosts(text)


def test_a_host_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        parse_hosts(str(tmp_path / "none"))
