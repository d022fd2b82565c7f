"""Layers of libearlybird and of the kernels: what files include, and who uses a channel's parts."""

import os
import re
from pathlib import Path

import pytest

from earlybird.data.mpi_settings import RECORDED, SETTINGS

NATIVE = Path(__file__).parents[2] / "native"


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (NATIVE / folder).rglob("*.[ch]*"))


LIBRARY_SOURCES = sources("partitioned", "interpose", "recorder")
KERNEL_SOURCES = sources("harness", "kernels")
SOURCES = LIBRARY_SOURCES + KERNEL_SOURCES

# From the lowest to the highest; the folders of one line do not include each other. Library and kernels share
# only the installed header.
LIBRARY_LAYERS = (
    {"include"},
    {"partitioned/segmentation", "partitioned/tags"},
    {"partitioned/cache", "partitioned/process"},
    {"partitioned/node"},
    {"partitioned/domain"},
    {"partitioned/matching"},
    {"partitioned/wire"},
    {"partitioned/adaptation", "partitioned/statistics"},
    {"partitioned/channel"},
    {"partitioned"},
    {"interpose/objects"},
    {"interpose"},
    {"interpose/fortran"},
    {"recorder/recording"},
    {"recorder/agent", "recorder/calls", "recorder/threads"},
)
KERNEL_LAYERS = (
    {"include"},
    {"harness/messages", "harness/text"},
    {"harness/machine", "harness/mpi", "harness/request"},
    {"harness/team"},
    {"harness/clocks"},
    {"harness/sampling"},
    {"harness"},
    {"kernels/collectives/parts", "kernels/computing", "kernels/methods/parts", "kernels/packed"},
    {"kernels/collectives/algorithms"},
    {"kernels/collectives/operations"},
    {"kernels/collectives", "kernels/methods", "kernels/motifs", "kernels/nodes"},
    {"kernels"},
)
KNOW_NO_MPI = (
    "partitioned/cache", "partitioned/segmentation", "partitioned/tags", "partitioned/wire/tracking",
    "partitioned/node/host_memory", "partitioned/node/ring", "partitioned/node/shared_file",
    "harness/text", "harness/messages", "harness/request", "harness/team/location",
    "harness/clocks/clock_line", "harness/sampling/stop_rule", "kernels/collectives/algorithms/method_name",
    "kernels/collectives/parts/segments", "kernels/collectives/parts/tree",
    "kernels/motifs/grid", "kernels/motifs/stencil", "kernels/motifs/sweep_cells", "kernels/nodes/core_speed",
    "kernels/nodes/tournament",
)  # fmt: skip

# The parts of a channel and the files that own them. Those of eb_transfer are constant, and read everywhere.
PARTS = {
    "eb_match": "partitioned/matching/matching",
    "eb_buffer": "partitioned/wire/buffer",
    "eb_tracking": "partitioned/wire/tracking",
    "eb_wire": "partitioned/wire/wire",
    "eb_adaptation": "partitioned/adaptation/adaptation",
    "eb_statistics": "partitioned/statistics/statistics",
}
CHANNEL = NATIVE / "partitioned" / "channel" / "parts.h"


def included(source: str) -> list[str]:
    """The project's headers that this source includes."""
    return re.findall(r'^\s*#\s*include\s*"([^"]+)"', source, re.MULTILINE)


def wrong_includes(file: str, source: str) -> list[str]:
    """Included headers that are neither of the file's own folder nor of a lower layer."""
    own = os.path.dirname(file)
    (layers,) = (layers for layers in (LIBRARY_LAYERS, KERNEL_LAYERS) if own in set().union(*layers))
    level = next(number for number, folders in enumerate(layers) if own in folders)
    allowed = {own}.union(*layers[:level])
    return [header for header in included(source) if os.path.dirname(header) not in allowed]


def cycle(edges: dict[str, set[str]]) -> set[str]:
    """The units that are left when those that need no other are removed repeatedly; empty without a cycle."""
    remaining = {unit: set(needed) - {unit} for unit, needed in edges.items()}
    while lowest := {unit for unit, needed in remaining.items() if not needed & set(remaining)}:
        remaining = {unit: needed for unit, needed in remaining.items() if unit not in lowest}
    return set(remaining)


def code_of(source: str) -> str:
    """The source without comments and included headers."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|#\s*include\s*"[^"]*"', "", source, flags=re.DOTALL)


def foreign_members(source: str, part: str, names: set[str]) -> set[str]:
    """Uses of members of `part`, of one of `names` or of a variable of that type declared in this source."""
    code = code_of(source)
    names = names | set(re.findall(rf"\b{part}\s*\**\s*(?:const\s+)?(\w+)\s*[;,)=]", code))
    used = rf"\b({'|'.join(sorted(names))})\s*(?:->|\.)\s*(\w+)"
    return {f"{name}.{member}" for name, member in re.findall(used, code)} if names else set()


def name_of(path: Path) -> str:
    return path.relative_to(NATIVE).as_posix()


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_file_includes_only_its_own_folder_and_lower_layers(path):
    assert wrong_includes(name_of(path), path.read_text()) == []


def test_files_do_not_need_each_other_in_a_circle():
    """A header and the source of the same name are one unit."""
    edges = {}
    for path in SOURCES:
        headers = {os.path.splitext(header)[0] for header in included(path.read_text())}
        edges.setdefault(os.path.splitext(name_of(path))[0], set()).update(headers)
    assert cycle(edges) == set()


def test_every_folder_is_a_layer():
    folders = {os.path.dirname(name_of(path)) for path in SOURCES}
    assert folders | {"include"} == set().union(*LIBRARY_LAYERS, *KERNEL_LAYERS)


@pytest.mark.parametrize("start", KNOW_NO_MPI)
def test_what_computes_only_knows_no_mpi(start):
    files = [path for path in SOURCES if name_of(path).startswith(start)]
    assert files
    for path in files:
        assert not re.search(r"<mpi\.h>|\bP?MPI_[A-Z]", code_of(path.read_text())), name_of(path)


@pytest.mark.parametrize("part", PARTS)
def test_members_of_a_part_are_used_only_by_its_own_files(part):
    (name,) = re.findall(rf"\b{part} (\w+);", CHANNEL.read_text())
    wrong = {
        name_of(path): used
        for path in LIBRARY_SOURCES
        if os.path.splitext(name_of(path))[0] != PARTS[part]
        and (used := foreign_members(path.read_text(), part, {name}))
    }
    assert wrong == {}


def test_channel_is_composed_of_the_parts():
    source = code_of(CHANNEL.read_text())
    (members,) = re.findall(r"typedef struct eb_channel \{(.*?)\} eb_channel;", source, re.DOTALL)
    types = re.findall(r"^\s*(?:struct )?(\w+)\b[^;]*;", members, re.MULTILINE)
    assert set(PARTS) <= set(types)
    assert len(types) < 20


@pytest.mark.parametrize(
    ("file", "header"),
    [
        ("partitioned/wire/wire.h", "partitioned/channel/parts.h"),
        ("partitioned/statistics/trace.c", "partitioned/adaptation/feedback.h"),
        ("partitioned/matching/control.c", "interpose/interpose.h"),
        ("partitioned/channel/issue.c", "partitioned/library.h"),
        ("harness/team/team.cpp", "harness/clocks/clock_sync.hpp"),
        ("harness/request/request.hpp", "harness/sampling/stop_rule.hpp"),
        ("harness/kernel_main.cpp", "kernels/methods/registry.hpp"),
        ("kernels/methods/partitioned.hpp", "partitioned/channel/channel.h"),
    ],
)
def test_an_include_of_no_lower_layer_is_found(file, header):
    assert wrong_includes(file, f'#include <mpi.h>\n# include "{header}"\n') == [header]


def test_a_cycle_and_a_foreign_member_are_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"a", "b", "c"}
    assert cycle({"a": {"a", "b"}, "b": {"c"}, "c": set()}) == set()
    assert foreign_members("f(&c->wire, wire->lane); /* wire.x */", "eb_wire", {"wire"}) == {"wire.lane"}
    assert foreign_members("int f(const eb_wire *w) { return w->lane; }", "eb_wire", set()) == {"w.lane"}


@pytest.mark.parametrize("source", ["kernels/nodes/facts.cpp", "recorder/recording/settings.c"])
def test_all_keep_the_same_variables_of_users(source):
    """Those of a launch record, of the nodes of a check and of a recording."""
    (names,) = re.findall(r"\bprefixes\b(?:\[\])? = \{(.*?)\};", (NATIVE / source).read_text(), re.DOTALL)
    assert tuple(re.findall(r'"([^"]*)"', names)) == SETTINGS


def test_a_launch_record_keeps_libraries_and_their_settings_and_not_all_of_the_shell():
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "PSM3_FOO", "KMP_AFFINITY", "MPIR_CVAR_X", "SLURM_JOB_ID"):
        assert RECORDED.match(name)
    assert not any(map(RECORDED.match, ("PATH", "HOME", "MY_OMP_X", "AWS_SECRET")))
