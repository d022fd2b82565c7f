"""Imports between packages go in one direction, and the docstring of every file states its purpose."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "earlybird"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# The packages that each package may import.
MAY_IMPORT = {
    "data": set(),
    "models": set(),
    "patterns": {"data"},
    "analysis": {"models", "data"},
    "present": {"analysis", "compare", "fit", "interop", "patterns", "predict", "models", "data"},
    "papers": {
        "present",
        "measure",
        "launch",
        "fit",
        "predict",
        "compare",
        "interop",
        "patterns",
        "models",
        "data",
    },
    "fit": {"compare", "models", "data"},
    "predict": {"models", "data"},
    "compare": {"models", "data"},
    "check": {"models", "data"},
    "advise": {"compare", "predict", "patterns", "models", "data"},
    "record": {"advise", "analysis", "predict", "patterns", "models", "data"},
    "interop": {"analysis", "compare", "patterns", "data"},
    "machine": {"data"},
    "toolchain": {"machine", "data"},
    "launch": {"toolchain", "machine", "data"},
    "measure": {"check", "compare", "predict", "launch", "toolchain", "machine", "models", "data"},
}
ALL_PACKAGES = {*MAY_IMPORT, "cli"}


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
            # In `from earlybird import fit` only the imported name is the package.
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return names


def imported_packages(names: set[str], module: str) -> set[str]:
    """The other packages of earlybird among the names that a module imports."""
    packages = {name.split(".")[1] for name in names if "earlybird." in name}
    return (packages & ALL_PACKAGES) - {module.split(".")[1]}


@cache
def read(path: Path) -> tuple[set[str], str | None]:
    """The names that a file of the package imports, and its docstring."""
    tree = ast.parse(path.read_text())
    return imported_modules(tree, name_of(path)), ast.get_docstring(tree)


def packages_of(path: Path) -> set[str]:
    return imported_packages(read(path)[0], name_of(path))


def name_of(path: Path) -> str:
    return ".".join(["earlybird", *path.relative_to(PACKAGE).with_suffix("").parts])


def package_of(path: Path) -> str | None:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


@pytest.mark.parametrize("package", sorted(ALL_PACKAGES - {"cli"}))
def test_package_imports_only_permitted_packages(package):
    wrong = {
        f"{name_of(path)} imports {other}"
        for path in SOURCES
        if package_of(path) == package
        for other in packages_of(path) - MAY_IMPORT[package]
    }
    assert not wrong


def test_nothing_outside_imports_cli():
    outside = [path for path in SOURCES if package_of(path) != "cli" and path.name != "__main__.py"]
    assert not [name_of(path) for path in outside if "cli" in packages_of(path)]


def test_every_folder_of_the_package_is_a_known_package():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= ALL_PACKAGES


def test_contributing_shows_what_each_package_may_import():
    text = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| .+ \|(?: (\w[\w, ]*)|) \|$", text, re.MULTILINE)
    shown = {name: set(permitted.split(", ")) - {""} for name, permitted in rows}
    assert shown == MAY_IMPORT | {"cli": {"everything"}}


def test_permitted_imports_have_no_cycle():
    remaining = dict(MAY_IMPORT)
    while remaining:
        lowest = [package for package, below in remaining.items() if not below & set(remaining)]
        assert lowest, f"a cycle among {sorted(remaining)}"
        for package in lowest:
            del remaining[package]


def test_every_package_that_is_imported_is_a_declared_dependency():
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = [*project["dependencies"], *extras["otf2"], *extras["hypergraph"]]
    declared = {re.match(r"[\w.-]+", text)[0].lower() for text in named}
    imported = {name.split(".")[0] for path in SOURCES for name in read(path)[0]}
    # otf2 has two packages; without it, they are not found.
    found = {"_otf2": ("otf2",)} | packages_distributions()
    others = imported - sys.stdlib_module_names - {"earlybird"}
    assert not {name for name in others if not {one.lower() for one in found.get(name, (name,))} & declared}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_file_begins_with_a_one_sentence_docstring(path):
    docstring = read(path)[1]
    assert docstring, "the file has no docstring"
    sentence = docstring.split("\n\n")[0].replace("\n", " ")
    assert sentence.endswith((".", ":")), sentence
    assert len(sentence) <= 220, sentence
    assert ". " not in sentence.replace("et al. ", ""), f"more than one sentence: {sentence}"


@pytest.mark.parametrize(
    ("source", "packages"),
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
def test_imports_are_recognised_in_every_form(source, packages):
    module = "earlybird.data.pattern"
    assert imported_packages(imported_modules(ast.parse(source), module), module) == packages


def test_results_and_the_description_of_kernels_import_in_one_direction():
    names, new = set(), {"earlybird.data.kernels"}
    while new:
        names |= new
        paths = (PACKAGE / f"{name.removeprefix('earlybird.').replace('.', '/')}.py" for name in new)
        new = {name for path in paths if path.exists() for name in read(path)[0]} - names
    assert not names & {"earlybird.data.results", "earlybird.data.parameters", "earlybird.data.run_keys"}
