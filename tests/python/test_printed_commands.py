"""Every command that Earlybird prints exists with its options, and measures what the answer lacks."""

import ast
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from earlybird.advise.collective import advise_collective
from earlybird.data.collective_algorithms import OPERATIONS, UNMODELLED
from earlybird.data.measure_commands import (
    MEASURED_WITH,
    MESSAGES,
    LaunchOptions,
    measure_command,
    virtual_cluster,
)
from earlybird.data.profile import Profile, load_profile
from earlybird.measure.collective import collective_groups
from earlybird.measure.groups import Library, Options, Resources
from earlybird.predict.collective import measure_hint, sizes_around
from earlybird.predict.pipelined import measure_pipelines_command
from tests.python.test_docs import command_called, unknown_options

SOURCES = sorted((Path(__file__).parents[2] / "src/earlybird").rglob("*.py"))
# In backquotes, after what introduces a next command, or alone, as an example.
_PRINTED = re.compile(
    r"`(earlybird [^`]*)`|(?:next: |and: |, or |MPI: |&& )(earlybird [^`;,&]*)|^(earlybird [^`,&]*)"
)
LAUNCHES = (
    LaunchOptions(),
    LaunchOptions(launcher="cluster:mine", mpi="mpich"),
    LaunchOptions(hosts="node1,node2", agent="ssh -p 22", mpi="/opt/my mpi/bin/mpicc"),
    LaunchOptions(launcher="srun", srun="--network='a b' -p debug", mpi="mpich"),
)


def texts(source):
    """The texts of a module; each value that is filled in is X."""
    tree = ast.parse(source)
    parts = {id(one) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for one in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(one.value if isinstance(one, ast.Constant) else "X" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def printed(text):
    """The commands in a text, as arguments."""
    for match in _PRINTED.finditer(text.replace("{}", "X")):
        command = next(filter(None, match.groups())).split("; ")[0]  # what follows is the shell's
        try:
            yield shlex.split(command)
        except ValueError:  # the rest of it is in another text
            yield command.split()


def is_command(arguments):
    """Whether it names a command: `earlybird kernel:` is a prefix of messages."""
    return len(arguments) > 1 and re.fullmatch(r"[a-z-]+", arguments[1]) and arguments[1] != "is"


def test_every_command_in_a_text_exists_with_its_options():
    found = {
        tuple(arguments): path.name
        for path in SOURCES
        for text in texts(path.read_text())
        for arguments in filter(is_command, printed(text))
    }
    assert len(found) > 100
    wrong = {shlex.join(one): name for one, name in found.items() if unknown_options(list(one))}
    assert not wrong


def test_only_one_module_quotes():
    """It also takes care of characters that a terminal does not show, of backquotes and of leading dashes."""
    others = {
        path.name for path in SOURCES if re.search(r"shlex\.(quote|join)\b|from shlex", path.read_text())
    }
    assert others <= {"shell_commands.py", "srun_arguments.py"}  # whose text is for shlex.split


def commands_with_values(source):
    """(the command up to a value, the value as it is written) in the formatted texts of a module."""
    for node in ast.walk(ast.parse(source)):
        text = ""
        for part in node.values if isinstance(node, ast.JoinedStr) else ():
            if isinstance(part, ast.Constant):
                text += part.value
                continue
            within = re.search(r"(`|next: |use it with: |with --resume |^(?=earlybird [a-z]))([^`]*)$", text)
            if within and (within[1] != "`" or text.count("`") % 2):
                yield within[2], ast.unparse(part.value)
            text += "X"


def test_paths_and_hosts_in_commands_are_quoted():
    quoted = re.compile(
        r"(quoted|path_argument|command_text|measure_command|_\w+|commands\.\w+|following\.\w+)\("
    )
    foreign = re.compile(r"\b(path|output|source|folder|hosts?|file|name)\b|sys\.")
    known = {"Path(sys.executable).name", "cluster.name", "self.name", "name", "flavour_name"}
    values = {
        (path.name, command, value)
        for path in SOURCES
        for command, value in commands_with_values(path.read_text())
    }
    assert len(values) > 50
    assert not [
        one for one in values if foreign.search(one[2]) and not quoted.match(one[2]) and one[2] not in known
    ]


def test_commands_are_found_in_texts():
    assert list(printed(next(texts('f"run `earlybird fit {run} --nonsense` first"')))) == [
        ["earlybird", "fit", "X", "--nonsense"]
    ]


def parse(command):
    """Parse `earlybird ...` as the command line does, without running it."""
    name, *arguments = shlex.split(command)
    assert name == "earlybird"
    called, rest = command_called(arguments)
    return called.make_context(arguments[0], list(rest)).params


@pytest.mark.parametrize("launch", LAUNCHES)
def test_a_command_that_measures_is_parsed_with_where_it_runs(launch):
    several = shlex.split(measure_command(MESSAGES, {"launches": 7}, launch))
    assert several[2:5] == MESSAGES.split() and not unknown_options(several)
    for suites in ("completion", "contention", "pipeline", "msgrate"):
        given = parse(measure_command(suites, {"launches": 7, "budget": None}, launch))
        assert [given[name] or "" for name in ("launcher", "hosts", "agent", "srun")] == [
            launch.launcher or "local", launch.hosts, launch.agent, launch.srun
        ], suites  # fmt: skip
        assert given["launches"] == 7
    pipelines = measure_pipelines_command(8, 1 << 20, {16: 1e-10, 8: 1e-10}, "inter_node", [4], launch)
    assert parse(pipelines.strip("`"))["levels"] == "inter_node"


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one not in UNMODELLED])
def test_the_commands_that_add_a_collective_measure_it_where_the_ranks_are(operation):
    for launch in LAUNCHES:
        hint = measure_hint(operation, launch, None, "4x1x1", "core")
        measure, fit, _ = re.findall(r"`([^`]*)`", hint)
        given = parse(measure)
        assert given["op"] == operation and str(parse(fit)["output"]) == f"{operation}.json"
        resources = Resources(
            {"intra_socket": 2, "inter_node": 2}, 2, nodes=4, family="mpich", library=Library("mpich")
        )
        options = Options(
            operations=(operation,), layout=given["layout"], algorithms=("default",), sizes_bytes=(8,)
        )
        points = [
            point
            for group in collective_groups(options, resources, "mpich")
            for point in group.points
            if point["operation"] == operation
        ]
        if operation != "barrier":
            assert {(point["ranks"], point["layout"]) for point in points} == {(4, "4x1x1")}


@pytest.mark.parametrize(
    "recorded, sizes",
    [
        ([0], "8B,32B,128B,512B"),
        ([8, 8], "8B,32B,128B,512B"),
        ([1 << 20], "16KiB,64KiB,256KiB,1MiB"),
        ([4100, 24], "8B,24B,4KiB,16KiB"),
        (range(8, 800, 8), "8B,120B,232B,344B,456B,568B,680B,792B"),
    ],
)
def test_sizes_are_those_recorded_and_as_many_as_a_form_needs(recorded, sizes):
    assert sizes_around(recorded) == sizes


def test_advice_outside_the_measured_range_asks_for_the_placement_that_it_is_of():
    folder = Path(__file__).parents[2] / "examples/collectives"
    known = load_profile(folder / "profile.json")
    known = replace(known, extra={**known.extra, MEASURED_WITH: {"launcher": "cluster:c", "mpi": "mpich"}})
    advice, _ = advise_collective(known, "bcast", 4, 1 << 30, layout="2x1x2", map_by="core")
    (command,) = {one for note in advice.notes for one in re.findall(r"`(earlybird measure [^`]*)`", note)}
    given = parse(command)
    assert (given["layout"], given["ranks"], given["launcher"]) == ("2x1x2", "4", "cluster:c")
    assert "1GiB" in given["sizes"] and "8" in given["sizes"].split(",")


def test_what_is_measured_again_gets_a_free_name_and_is_fitted_with_the_runs_of_the_profile(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more").mkdir()
    folder = Path(__file__).parents[2] / "examples/collectives"
    known = replace(load_profile(folder / "profile.json"), runs=({"id": "run-a"}, {"id": "run-b"}))
    advice, _ = advise_collective(known, "bcast", 4, 1 << 30, layout="2x1x2", map_by="core")
    (note,) = (note for note in advice.notes if "earlybird measure" in note)
    measure, fit = re.findall(r"`(earlybird [^`]*)`", note)
    assert str(parse(measure)["output"]) == "more2"
    given = parse(fit)
    assert [str(one) for one in given["sources"]] == ["RUN", "more2"] and str(given["output"]) == "PROFILE"
    assert note.endswith("RUN being the runs of the profile (run-a, run-b)")


def test_launch_options_are_those_of_the_profile_or_of_its_context():
    stated = Profile({}, extra={MEASURED_WITH: {"launcher": "cluster:p", "mpi": "mpich"}})
    assert LaunchOptions.of(stated).arguments == ["--launcher", "cluster:p", "--mpi", "mpich"]
    older = Profile({}, context={"launcher": "cluster", "flavour": "openmpi"})
    assert LaunchOptions.of(older).arguments == ["--launcher", "cluster:NAME", "--mpi", "openmpi"]
    local = Profile({}, context={"launcher": "local"})
    assert LaunchOptions.of(local).arguments == []


def test_a_command_names_no_cluster_that_has_ended_with_the_demo():
    of_demo = LaunchOptions(launcher="cluster:demo-4711", mpi="mpich")
    assert of_demo.arguments == ["--launcher", "cluster:NAME", "--mpi", "mpich"]
    assert of_demo.to_json()["launcher"] == "cluster:demo-4711"
    assert LaunchOptions(launcher="cluster:demo-mine").arguments == ["--launcher", "cluster:demo-mine"]


def test_the_cluster_of_a_recorded_command_is_known():
    assert virtual_cluster(("earlybird", "cluster", "mpiexec", "--name", "p", "--", "./app")) == "cluster:p"
    assert virtual_cluster(("/bin/earlybird", "cluster", "mpiexec", "--", "./app")) == "cluster:virtual"
    assert virtual_cluster(("mpiexec", "-n", "4", "./app")) == ""
