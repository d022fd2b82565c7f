"""The house keeps its order: imports between rooms point one way, and every file says what it is for."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "earlybird"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# Which other rooms a room may import. What is not here may import nothing of ours.
MAY_IMPORT = {
    "data": set(),
    "models": set(),
    "patterns": {"data"},
    "report": {"data"},
    "fit": {"models", "data"},
    "predict": {"models", "data"},
    "compare": {"models", "data"},
    "advise": {"predict", "models", "data"},
    "machine": {"data"},
    "toolchain": {"machine", "data"},
    "launch": {"toolchain", "machine", "data"},
    "measure": {"launch", "toolchain", "machine", "data"},
}
ALL_ROOMS = {*MAY_IMPORT, "cli"}


def imported_modules(tree: ast.Module, module: str) -> set[str]:
    """Full names of all modules imported anywhere in `tree`, the source of `module` (a package's own name for
    its `__init__.py` ends in `.__init__`)."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            # `from earlybird import fit` names a room only together with what is imported.
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return names


def imported_rooms(source: str, module: str) -> set[str]:
    """The rooms of earlybird that this source imports, without its own."""
    rooms = {
        name.split(".")[1] for name in imported_modules(ast.parse(source), module) if "earlybird." in name
    }
    return (rooms & ALL_ROOMS) - {module.split(".")[1]}


def name_of(path: Path) -> str:
    return ".".join(["earlybird", *path.relative_to(PACKAGE).with_suffix("").parts])


def room_of(path: Path) -> str | None:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


@pytest.mark.parametrize("room", sorted(ALL_ROOMS - {"cli"}))
def test_room_imports_only_what_lies_below_it(room):
    wrong = {
        f"{name_of(path)} imports {other}"
        for path in SOURCES
        if room_of(path) == room
        for other in imported_rooms(path.read_text(), name_of(path)) - MAY_IMPORT[room]
    }
    assert not wrong


def test_nothing_outside_imports_cli():
    outside = [path for path in SOURCES if room_of(path) != "cli" and path.name != "__main__.py"]
    assert not [name_of(path) for path in outside if "cli" in imported_rooms(path.read_text(), name_of(path))]


def test_every_folder_of_the_package_is_a_known_room():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= ALL_ROOMS


def test_permitted_imports_make_no_circle():
    remaining = dict(MAY_IMPORT)
    while remaining:
        lowest = [room for room, below in remaining.items() if not below & set(remaining)]
        assert lowest, f"a circle among {sorted(remaining)}"
        for room in lowest:
            del remaining[room]


def test_every_package_that_is_imported_is_a_declared_dependency():
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]
    declared = {re.match(r"[\w.-]+", text)[0].lower() for text in project["dependencies"]}
    imported = {
        name.split(".")[0]
        for path in SOURCES
        for name in imported_modules(ast.parse(path.read_text()), name_of(path))
    }
    found = packages_distributions()
    others = imported - sys.stdlib_module_names - {"earlybird"}
    assert not {name for name in others if not {one.lower() for one in found.get(name, ())} & declared}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_file_opens_with_one_sentence_naming_its_job(path):
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring, "the file has no docstring"
    sentence = docstring.split("\n\n")[0].replace("\n", " ")
    assert sentence.endswith((".", ":")), sentence
    assert len(sentence) <= 220, sentence
    assert ". " not in sentence.replace("et al. ", ""), f"more than one sentence: {sentence}"


@pytest.mark.parametrize(
    ("source", "rooms"),
    [
        ("import earlybird.fit.profile", {"fit"}),
        ("from earlybird.models import statistics", {"models"}),
        ("from earlybird import predict", {"predict"}),
        ("from ..compare import times", {"compare"}),
        ("from .errors import InputError", set()),
        ("def later():\n    from earlybird.cli import main", {"cli"}),
        ("from earlybird.data import files\nimport numpy", set()),
        ("from earlybird import __version__", set()),
    ],
)
def test_imports_are_recognised_in_every_form(source, rooms):
    assert imported_rooms(source, "earlybird.data.pattern") == rooms
