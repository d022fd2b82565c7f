"""`measure collective` as a user types it: algorithms confirmed on every MPI, runs resumed."""

import json
import re

import pytest

from earlybird.data.collective_configuration import Region, configuration, selection_configuration
from earlybird.data.mpich_selection import find_selection
from earlybird.machine.flavours import present_flavours
from tests.conftest import require_mpi

pytestmark = pytest.mark.mpi


@pytest.fixture
def earlybird(in_process):
    return in_process


ATTEMPTS = 5  # to see a tree while no rank waits for its core
SMALL = ("--sizes", "64", "--launches", "1", "--budget", "200ms", "--quiet")


def rows(earlybird, *arguments):
    return json.loads(earlybird("measure", "collective", *SMALL, "--json", *arguments).stdout)["points"]


@pytest.mark.thorough
@pytest.mark.measures_time("a tree is seen from who is late, and a rank that waits for its core is late, too")
def test_forced_algorithms_are_confirmed_to_run(earlybird, mpi):
    algorithms = "linear,pipeline:16,binomial,own-pipeline"
    found = rows(earlybird, "--mpi", mpi, "--ranks", "4", "--algorithm", algorithms, "-o", "run")
    methods = {"default", *algorithms.split(","), *(["own-binomial"] if mpi == "intel" else [])}
    for operation in ("bcast", "reduce"):
        output = {row["method"]: row["verification"] for row in found if row["operation"] == operation}
        assert set(output) == methods
        # A rank that waits for its core is late too; then the tree is not verified.
        assert "contradicted" not in output.values() and "confirmed" in output.values()
    for row in found:
        assert row["mean_s"] <= row["time_s"] * 1.5
        assert (row["speed_up"] is None) == (row["method"] in ("default", ""))


@pytest.mark.thorough
def test_operations_without_a_root_take_every_algorithm_that_is_known(earlybird, any_mpi):
    arguments = (
        "--mpi",
        any_mpi,
        "--ranks",
        "4",
        "--algorithm",
        "all",
        "--op",
        "allreduce,allgather,alltoall,barrier",
    )
    found = rows(earlybird, *arguments, "-o", "run")
    assert {row["operation"] for row in found if row["method"] != "default"} >= {
        "allreduce",
        "allgather",
        "barrier",
    }
    assert all(row["root"] is None and row["verification"] == "not verified" for row in found)


def test_a_run_is_resumed_with_what_it_was_begun_with(earlybird, in_process, refused, any_mpi):
    arguments = (
        "--mpi",
        any_mpi,
        "--op",
        "gather",
        "--ranks",
        "2..3",
        "--root",
        "1",
        "--verify",
        "none",
        "-o",
        "run",
    )
    first = rows(earlybird, *arguments)
    assert {row["ranks"] for row in first} == {2, 3} and {row["root"] for row in first} == {1}
    again = earlybird("measure", "--resume", "-o", "run", "--launches", "2", "--budget", "2s", "--json")
    # A busy machine may spend the budget before the second launch of the other number of ranks.
    found = {row["launches"] for row in json.loads(again.stdout)["points"] if row["method"] == "linear"}
    assert found in ({2}, {1, 2})
    for arguments in (("--ranks", "4"), ("--op", "bcast"), ("--map-by", "node"), ("--algorithm", "all")):
        refused(in_process("measure", "--resume", "-o", "run", *arguments, check=False), arguments[0])


def test_the_columns_of_osu_are_of_one_method(earlybird, refused, any_mpi):
    arguments = (
        "measure",
        "collective",
        *SMALL,
        "--mpi",
        any_mpi,
        "--op",
        "bcast",
        "--ranks",
        "2",
        "--format",
        "osu",
    )
    output = earlybird(*arguments, "--algorithm", "default", "-o", "run").stdout.splitlines()
    assert output[0] == "# OSU MPI Broadcast Latency Test" and output[-1].split()[0] == "64"
    refused(earlybird(*arguments, "-o", "other", check=False), "--format osu prints one column")


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (("--op", "scan"), "--op has 'scan'"),
        (("--algorithm", "magic"), "--algorithm has 'magic'"),
        (("--ranks", "1"), "--ranks has 1"),
        (("--ranks", "2", "--root", "2"), "--root is 2"),
        (("--ranks", "8..2"), "--ranks has '8..2'"),
        (("--sizes", "1TiB"), "at most 2147483647"),
        (("--op", "alltoall", "--ranks", "64", "--sizes", "2GB"), "are free"),
        (("--map-by", "core,moon"), "--map-by has 'moon'"),
        (("--levels", "inter_node"), "no such option: --levels"),
        (("--segments", "0,x"), "--segments is 'x'"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(
    in_process, refused, tmp_path, any_mpi, arguments, output
):
    refused(
        in_process("measure", "collective", "--mpi", any_mpi, *arguments, "-o", "run", check=False), output
    )
    assert not (tmp_path / "run").exists()


def test_what_advice_writes_makes_the_mpi_take_the_algorithm(earlybird, mpi, tmp_path, monkeypatch):
    """Checked as docs/advice.md describes: by measuring `default` under it."""
    regions = [Region("bcast", "binomial", 5, 0, 31), Region("bcast", "pipeline", 5, 32)]
    made = configuration(mpi, regions)
    (tmp_path / "config").write_text(made.text)
    lines = made.text if made.kind == "shell" else made.use.replace("FILE", str(tmp_path / "config"))
    for name, value in re.findall(r'(\w+)="?([^"\s]+)"?', lines.replace("export ", "")):
        monkeypatch.setenv(name, value)

    def tree_seen(attempt):
        arguments = ("--mpi", mpi, "--op", "bcast", "--ranks", "5", "--algorithm", "default")
        return {row["tree_seen"] for row in rows(earlybird, *arguments, "-o", f"run{attempt}")}

    # A rank that waits for its core is late too; then the tree is not verified.
    assert any(tree_seen(attempt) == {"chain"} for attempt in range(ATTEMPTS))


@pytest.mark.parametrize(("size", "tree"), [("4095", "linear"), ("4096", "chain")])
def test_mpich_selects_by_size_what_its_files_contain(earlybird, tmp_path, monkeypatch, size, tree):
    """The tree of `default`, seen from who waits for a late rank, changes exactly where the rule says; rules
    of another operation are in the same files."""
    flavour = next((one for one in present_flavours() if one.name == "mpich"), None)
    if flavour is None:
        pytest.skip("MPICH is not installed")
    selection = find_selection(flavour.mpicc.resolve().parents[1])
    assert selection is not None
    bcast = [Region("bcast", "linear", 5, 8), Region("bcast", "pipeline", 5, 4096, 8192)]
    made = selection_configuration(selection, [*bcast, Region("allreduce", "ring", 5, 8)], 1)
    for suffix, text in made.files.items():
        (tmp_path / f"rules{suffix}").write_text(text)
    for name, suffix in re.findall(r'(\w+)="FILE([^"]+)"', made.text):
        monkeypatch.setenv(name, str(tmp_path / f"rules{suffix}"))
    arguments = ("--mpi", "mpich", "--op", "bcast", "--ranks", "5", "--algorithm", "default")

    def tree_seen(attempt):
        found = rows(earlybird, *arguments, "--sizes", size, "-o", f"run{attempt}")
        return {row["tree_seen"] for row in found}

    assert any(tree_seen(attempt) == {tree} for attempt in range(ATTEMPTS))


@pytest.mark.parametrize(
    ("ranks", "size", "tree"),
    [
        (4, 63, "binomial-doubling"),
        (4, 64, "chain"),
        (3, 64, "linear"),
        (6, 64, "binomial-doubling"),
    ],
)
def test_rules_of_open_mpi_hold_for_their_ranks_and_sizes_only(
    earlybird, tmp_path, monkeypatch, ranks, size, tree
):
    """Elsewhere its default stays, whose tree is not the chain of the rule. Rules of other operations stand
    before and after."""
    require_mpi("openmpi")
    others = Region("allreduce", "ring", 4), Region("gather", "linear", 4)
    made = configuration("openmpi", [others[0], Region("bcast", "pipeline", 4, 64, 127), others[1]])
    (tmp_path / "rules").write_text(made.text)
    for name, value in re.findall(r"(\w+)=(\S+)", made.use.replace("FILE", str(tmp_path / "rules"))):
        monkeypatch.setenv(name, value)
    arguments = ("--mpi", "openmpi", "--op", "bcast", "--ranks", str(ranks), "--algorithm", "default")

    def tree_seen(attempt):
        found = rows(earlybird, *arguments, "--sizes", str(size), "-o", f"run{attempt}")
        return {row["tree_seen"] for row in found}

    assert any(tree_seen(attempt) == {tree} for attempt in range(ATTEMPTS))


@pytest.mark.thorough
def test_one_run_is_checked_against_itself(earlybird, any_mpi):
    """Whatever the times are: every size and operation has its guidelines, and one launch decides nothing."""
    earlybird(
        "measure", "collective", "--mpi", any_mpi, "--ranks", "2", "--op", "bcast,reduce,allreduce",
        "--sizes", "8,64", "--algorithm", "default", *SMALL[2:], "-o", "run",
    )  # fmt: skip
    checked = earlybird("compare", "--guidelines", "run", "--json")
    found = json.loads(checked.stdout)
    calls = [
        (one["operation"], tuple(part["operation"] for part in one["replacement"])) for one in found["checks"]
    ]
    assert calls.count(("allreduce", ("reduce", "bcast"))) == calls.count(("reduce", ("allreduce",))) == 2
    assert calls.count(("bcast", ("bcast",))) == 2  # the larger message, and the smaller one several times
    assert {one["outcome"] for one in found["checks"]} == {"inconclusive"}
    assert "too few launches" in checked.stderr
