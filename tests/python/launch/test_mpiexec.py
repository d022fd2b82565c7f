"""The arguments of each family of mpiexec."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from earlybird.data.contexts import context_variables
from earlybird.data.errors import InputError
from earlybird.launch.mpiexec import RemoteHosts, invocation
from earlybird.launch.placement import Binding
from earlybird.machine.flavours import Flavour

BY_MPI = Binding("core, by the MPI", None)


def output(family, folder, cpus=None, *, oversubscribed=False, hosts=(), num_ranks=2):
    flavour = Flavour(family, family, "1", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))
    binding = BY_MPI if cpus is None else Binding("core", tuple((cpu,) for cpu in cpus))
    remote = RemoteHosts(tuple(hosts)) if hosts else None
    result = invocation(flavour, num_ranks, binding, folder, oversubscribed=oversubscribed, remote=remote)
    assert result.before_program[:3] == ("/mpi/bin/mpiexec", "-n", str(num_ranks))
    return list(result.before_program[3:]), result.env | result.preferred


def test_settings_and_variables_of_transports_reach_other_nodes(tmp_path, monkeypatch):
    monkeypatch.setenv("FI_PROVIDER", "tcp")
    monkeypatch.setenv("OMPI_MCA_pml", "ob1")
    mpi = Flavour(
        "openmpi",
        "openmpi",
        "1",
        Path("/mpi/bin/mpicc"),
        Path("/mpi/bin/mpiexec"),
        settings={"UCX_TLS": "sm"},
    )
    for hosts, passed in ((("a", "b"), True), ((), False)):
        remote = RemoteHosts(hosts) if hosts else None
        made = invocation(mpi, 2, BY_MPI, tmp_path, oversubscribed=False, remote=remote)
        arguments = " ".join(made.before_program)
        assert ("-x UCX_TLS -x FI_PROVIDER" in arguments) == passed
        assert "OMPI_MCA_pml" not in arguments  # which it passes itself


def test_ranks_are_bound_to_the_cores_of_a_list(tmp_path):
    assert output("mpich", tmp_path, (3, 1)) == (["-bind-to", "user:3,1"], {})
    arguments, _ = output("openmpi", tmp_path, (3, 1))
    assert arguments == ["--map-by", "pe-list=3,1:ordered", "--bind-to", "core"]
    arguments, env = output("intel", tmp_path, (3, 1))
    assert arguments == []
    assert (env["I_MPI_PIN"], env["I_MPI_PIN_DOMAIN"]) == ("1", "[0x8,0x2]")


@pytest.mark.parametrize(
    ("cpus", "shared", "placing"),
    [
        ((3, 1), False, ["--mca", "rmaps_rank_file_physical", "1", "--rankfile", "{}/ranks.txt"]),
        (None, False, ["--map-by", "core", "--bind-to", "core"]),
        ((0, 0), True, ["--oversubscribe", "--bind-to", "none"]),
    ],
)
def test_an_open_mpi_before_version_5_is_given_the_options_it_knows(tmp_path, cpus, shared, placing):
    mpi = Flavour("system", "openmpi", "4.1.4", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))
    binding = BY_MPI if cpus is None else Binding("core", tuple((cpu,) for cpu in cpus))
    made = invocation(mpi, 2, binding, tmp_path, oversubscribed=shared)
    placing = [argument.format(tmp_path) for argument in placing]
    assert list(made.before_program) == ["/mpi/bin/mpiexec", "-n", "2", *placing]
    if cpus == (3, 1):
        text = (tmp_path / "ranks.txt").read_text()
        assert text == "rank 0=localhost slot=3\nrank 1=localhost slot=1\n"


OPEN_MPI_4 = Flavour("system", "openmpi", "4.1.4", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))


@pytest.mark.parametrize(
    ("hosts", "threads", "shared", "lines", "placing"),
    [
        (["b", "a", "b"], 1, False, "b 0\na 0\nb 1\n", ["--map-by", "seq", "--bind-to", "core"]),
        (["b", "a", "b"], 2, False, "b 0-1\na 0-1\nb 2-3\n", ["--map-by", "seq", "--bind-to", "core"]),
        (["b", "a"], 1, True, "b\na\n", ["--oversubscribe", "--map-by", "seq", "--bind-to", "none"]),
        (
            ["me@b", "me@b", "a"], 1, False, "me@b slots=2\na slots=1\n",
            ["--map-by", "core", "--bind-to", "core"],
        ),
    ],
)  # fmt: skip
def test_hosts_are_given_to_an_open_mpi_before_version_5_in_its_options(
    tmp_path, hosts, threads, shared, lines, placing
):
    remote = RemoteHosts(tuple(hosts), "/agent", "10.0.0.0/24", "br0", "eth0")
    made = invocation(
        OPEN_MPI_4, len(hosts), BY_MPI, tmp_path, oversubscribed=shared, remote=remote, threads=threads
    )
    arguments = list(made.before_program)
    assert arguments[-len(placing) :] == placing and "--prtemca" not in arguments
    assert (tmp_path / "hosts.txt").read_text() == lines
    assert arguments[arguments.index("plm_rsh_agent") + 1] == "/agent"
    assert arguments[arguments.index("oob_tcp_if_include") + 1] == "10.0.0.0/24"
    assert arguments[arguments.index("btl") + 1] == "self,tcp,vader"


def test_users_whose_ranks_alternate_are_refused_for_an_open_mpi_before_version_5(tmp_path):
    with pytest.raises(InputError, match=r"in ~/\.ssh/config"):
        invocation(
            OPEN_MPI_4, 3, BY_MPI, tmp_path, oversubscribed=False, remote=RemoteHosts(("me@b", "a", "me@b"))
        )


def test_masks_reach_beyond_64_cpus(tmp_path):
    _, env = output("intel", tmp_path, (0, 100))
    assert env["I_MPI_PIN_DOMAIN"] == f"[0x1,0x1{'0' * 25}]"


def test_waiting_ranks_yield_when_cores_are_shared(tmp_path):
    _, env = output("mpich", tmp_path, (0, 0), oversubscribed=True)
    assert env == {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
    arguments, env = output("openmpi", tmp_path, (0, 0), oversubscribed=True)
    assert arguments == [
        "--map-by",
        "pe-list=0,0:ordered:OVERSUBSCRIBE",
        "--bind-to",
        "core:overload-allowed",
    ]
    assert env == {"OMPI_MCA_mpi_yield_when_idle": "1"}
    _, env = output("intel", tmp_path, (0, 0), oversubscribed=True)
    assert env["I_MPI_THREAD_YIELD"] == "2"


def test_a_path_with_a_colon_reaches_no_list_that_colons_divide(tmp_path):
    folder = tmp_path / "run 12:30,a"
    folder.mkdir()
    arguments, _ = output("openmpi", folder, (0, 1))
    assert not any("12:30" in word for word in arguments)


@pytest.mark.parametrize(
    ("family", "option", "lines"),
    [
        ("mpich", "-f", "b:1\na:1\nb:1\n"),  # the stand-in has no -rankmap
        ("intel", "-machinefile", "b:1\na:1\nb:1\n"),
        ("openmpi", "--hostfile", "b\na\nb\n"),
    ],
)
def test_hosts_are_given_rank_by_rank(tmp_path, family, option, lines):
    arguments, env = output(family, tmp_path, hosts=["b", "a", "b"], num_ranks=3)
    assert arguments[:2] == [option, str(tmp_path / "hosts.txt")]
    assert (tmp_path / "hosts.txt").read_text() == lines
    if family == "mpich":
        assert arguments[2:] == ["-bind-to", "core"]
    if family == "openmpi":
        assert arguments[2:] == ["--map-by", "seq", "--bind-to", "core"]
    if family == "intel":
        assert env["I_MPI_PIN_DOMAIN"] == "core"


@pytest.mark.parametrize("has_rank_map", [True, False])
def test_mpich_has_each_host_once_if_it_can_map_ranks(tmp_path, has_rank_map):
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(f"#!/bin/sh\necho '{'    -rankmap {rank map}' * has_rank_map}'\n")
    mpiexec.chmod(0o700)
    flavour = Flavour("mpich", "mpich", "1", tmp_path / "mpicc", mpiexec)
    for hosts, text, more in (
        (("b", "a", "b"), "b:2\na:1\n" if has_rank_map else "b:1\na:1\nb:1\n", has_rank_map),
        (("b", "b", "a"), "b:2\na:1\n", False),
    ):
        made = invocation(flavour, 3, BY_MPI, tmp_path, oversubscribed=False, remote=RemoteHosts(hosts))
        file = tmp_path / "hosts.txt"
        expected = ["-f", str(file), *(["-rankmap", "0,1,0"] if more else []), "-bind-to", "core"]
        assert list(made.before_program[3:]) == expected
        assert file.read_text() == text


def test_nodes_are_reached_by_the_agent_over_the_network_named(tmp_path):
    remote = RemoteHosts(("a", "b"), "/agent", "10.0.0.0/24", "br0", "eth0")
    for family in ("mpich", "intel"):
        arguments = arguments_of(family, tmp_path, BY_MPI, remote=remote)
        assert arguments[arguments.index("-launcher") :][:6] == (
            "-launcher", "ssh", "-launcher-exec", "/agent", "-iface", "br0",
        )  # fmt: skip
    arguments = arguments_of("openmpi", tmp_path, BY_MPI, remote=remote)
    assert arguments[arguments.index("plm_ssh_agent") + 1] == "/agent"
    assert arguments[arguments.index("prte_if_include") + 1] == "10.0.0.0/24"
    assert arguments[arguments.index("btl_tcp_if_include") + 1] == "eth0"


@pytest.mark.parametrize("family", ["mpich", "openmpi", "intel"])
def test_a_rank_binds_itself_where_its_mpi_cannot(tmp_path, family):
    binding = Binding("core", ((0, 1), (2, 3)), by_rank=True)
    arguments = arguments_of(family, tmp_path, binding, threads=2)
    if family == "mpich":
        assert arguments[arguments.index("-bind-to") + 1] == "none"
    if family == "openmpi":
        assert arguments[arguments.index("--bind-to") + 1] == "none"
    first = sorted(os.sched_getaffinity(0))[0]
    script = Path(arguments[-1]).read_text().replace("cpus=2,3", f"cpus={first}")
    Path(arguments[-1]).write_text(script)
    own, foreign = "PMI_RANK", "OMPI_COMM_WORLD_RANK"
    if family == "openmpi":
        own, foreign = foreign, own  # inside srun --mpi=pmi2 every process inherits a PMI_RANK
    output = started([*arguments[-2:], sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"],
                   {own: "1", foreign: "0"})  # fmt: skip
    assert (output.stdout.split(), output.stderr) == ([str(first)], "")


@pytest.mark.parametrize("family", ["mpich", "openmpi", "intel"])
@pytest.mark.parametrize("rank", ["", "2"])
def test_a_rank_without_a_number_does_not_start_unbound(tmp_path, family, rank):
    arguments = arguments_of(family, tmp_path, Binding("core", ((0,), (1,)), by_rank=True))
    own = "OMPI_COMM_WORLD_RANK" if family == "openmpi" else "PMI_RANK"
    output = started([*arguments[-2:], "echo", "started"], {own: rank, "PMIX_RANK": "0", "cpus": "0"})
    assert (output.returncode, output.stdout) == (2, "")
    assert output.stderr.startswith(
        f"earlybird kernel: {own} is '{rank}', which is not a rank of this launch"
    )
    assert output.stderr.count("\n") == 1 and "`earlybird doctor`" in output.stderr


def started(arguments, variables):
    return subprocess.run(
        arguments, env={"PATH": os.environ["PATH"]} | variables, capture_output=True, text=True, check=False
    )


def arguments_of(family, folder, binding, **options):
    flavour = Flavour(family, family, "1", Path("/mpi/bin/mpicc"), Path("/mpi/bin/mpiexec"))
    return invocation(flavour, 2, binding, folder, oversubscribed=False, **options).before_program


def test_shared_memory_alone_is_asked_for_on_one_machine_only(tmp_path):
    assert output("intel", tmp_path, (0, 1))[1]["I_MPI_FABRICS"] == "shm"
    assert "I_MPI_FABRICS" not in output("intel", tmp_path, hosts=["a", "b"])[1]


def test_open_mpi_binds_nothing_when_hosts_are_oversubscribed(tmp_path):
    arguments, _ = output("openmpi", tmp_path, hosts=["a", "a"], oversubscribed=True)
    assert arguments[2:] == ["--map-by", "seq:OVERSUBSCRIBE", "--bind-to", "none"]


def test_users_of_hosts_reach_each_mpiexec(tmp_path):
    hosts = ["me@b", "a", "me@b"]
    for family, lines in (("mpich", "me@b:1\na:1\nme@b:1\n"), ("intel", "me@b:1\na:1\nme@b:1\n")):
        output(family, tmp_path, hosts=hosts, num_ranks=3)
        assert (tmp_path / "hosts.txt").read_text() == lines
    # Open MPI's sequence of hosts cannot name users.
    arguments, _ = output("openmpi", tmp_path, hosts=hosts, num_ranks=3)
    assert (tmp_path / "hosts.txt").read_text() == "me@b slots=2\na slots=1\n"
    assert arguments[2:4] == ["--map-by", f"seq:file={tmp_path / 'sequence.txt'}"]
    assert (tmp_path / "sequence.txt").read_text() == "b\na\nb\n"
    (tmp_path / "a:b").mkdir()
    with pytest.raises(InputError, match="colon or a comma"):
        output("openmpi", tmp_path / "a:b", hosts=hosts, num_ranks=3)


def test_contexts_are_asked_for_by_each_mpis_variables():
    assert context_variables("openmpi", None) == {}
    assert context_variables("mpich", 4) == {"MPIR_CVAR_CH4_NUM_VCIS": "4"}
    assert context_variables("intel", 4)["I_MPI_THREAD_MAX"] == "4"
    with pytest.raises(InputError, match="Open MPI has no communication contexts"):
        context_variables("openmpi", 1)
