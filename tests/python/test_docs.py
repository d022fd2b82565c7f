"""The documentation is correct: links resolve, commands and options exist, examples load, scripts run."""

import csv
import dataclasses
import importlib
import io
import json
import os
import re
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from earlybird import __version__
from earlybird.cli.main import COMMANDS, RENAMED
from earlybird.data.advice import advice_from_json
from earlybird.data.comparison import comparison_from_json
from earlybird.data.layout import parse_layout
from earlybird.data.pattern import load_pattern
from earlybird.data.prediction import prediction_from_json
from earlybird.data.profile import profile_from_json
from earlybird.data.run import Run, sample_from_json
from earlybird.data.schema import Record
from earlybird.measure.suites import SUITES
from tools import file_tables

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
]

MAX_WORDS = 2500
# Searched and not read: the changes of all versions, and tables of keys.
SEARCHED = {"CHANGELOG.md"}
_TABLE_OF_KEYS = re.compile(r"<!-- keys of .*?<!-- end -->", re.DOTALL)

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
# A command begins a line, follows a prompt, or is in $(...).
_COMMAND = re.compile(r"(?:^|\$ |\$\(|[;&|] *)(earlybird(?: [^#|;)\n]*)?)", re.MULTILINE)
# COMMAND, SUITE... and [ are placeholders.
_PLACEHOLDER = re.compile(r"[A-Z]+(?:\.\.\.)?|\.\.\.|\[|\]")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in _BLOCK.findall(page.read_text()) if found == language]


def shown_commands(text: str) -> list[list[str]]:
    """The `earlybird ...` commands of a page, in its blocks and in its inline code, as arguments."""
    prose = _BLOCK.sub("", text)
    places = [
        _without_output(body.replace("\\\n", " "))
        for language, body in _BLOCK.findall(text)
        if language in ("", "console", "bash", "sh")
    ]
    places += [code for code in _INLINE.findall(prose) if code.startswith("earlybird")]
    found = [match[1] for place in places for match in _COMMAND.finditer(place)]
    return [shlex.split(command, comments=True) for command in found]


def _without_output(body: str) -> str:
    """The lines with a prompt; all, if none has one."""
    prompted = [line for line in body.splitlines() if line.startswith("$ ")]
    return "\n".join(prompted) or body


def command_called(arguments: list[str]) -> tuple[Any, list[str]] | None:
    """The command that `arguments` (after `earlybird`) call and what is left for it; None without one."""
    if not arguments or arguments[0].startswith("-") or _PLACEHOLDER.fullmatch(arguments[0]):
        return None
    name, *rest = arguments
    assert name in COMMANDS, f"there is no command {name!r}"
    command = importlib.import_module(f"earlybird.cli.commands.{name}").command
    while hasattr(command, "commands"):
        if hasattr(command, "several") and (not rest or rest[0] not in command.commands):
            return command.several, rest
        if hasattr(command, "default") and (not rest or rest[0] not in command.commands):
            return command.commands[command.default], rest
        if name == "reproduce" and rest and _PLACEHOLDER.fullmatch(rest[0]):
            return next(iter(command.commands.values())), rest[1:]  # the papers have most options in common
        if not rest or rest[0].startswith("-") or _PLACEHOLDER.fullmatch(rest[0]):
            break
        assert rest[0] in command.commands, f"{name} has no subcommand {rest[0]!r}"
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


def unknown_options(arguments: list[str]) -> list[str]:
    """Options of an `earlybird ...` command, given as arguments, that its help does not list."""
    called = command_called(arguments[1:])
    if called is None:
        return []
    command, rest = called
    known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    own = rest[: rest.index("--")] if "--" in rest else rest
    options = [word.split("=")[0].rstrip("]") for word in own if re.match(r"\[?--?[a-z]", word)]
    return [option for option in options if option.lstrip("[") not in known]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_resolves(page):
    text = _INLINE.sub("", _BLOCK.sub("", page.read_text()))
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", _BLOCK.sub("", target.read_text()), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{link} names no heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_shown_exists_with_its_options(page):
    for arguments in shown_commands(page.read_text()):
        if page.name == "CHANGELOG.md" and arguments[1:2] and arguments[1] in RENAMED:
            continue  # what an earlier version had
        unknown = unknown_options(arguments)
        assert not unknown, f"`{shlex.join(arguments)}` uses {', '.join(unknown)}"


@pytest.mark.parametrize("page", [page for page in PAGES if name_of(page) not in SEARCHED], ids=name_of)
def test_a_page_is_short_enough_to_read(page):
    assert len(_TABLE_OF_KEYS.sub("", page.read_text()).split()) <= MAX_WORDS


def test_measuring_lists_every_suite_with_its_default_points_and_budgets():
    section = (ROOT / "docs/measuring.md").read_text().split("\n## ")[2]
    _, operations, points = section.split("| suite |")
    budgets = {suite.budgets_s for suite in SUITES.values()}
    for name in SUITES:
        assert f"`{name}`" in operations.split("\n\n")[0] and f"`{name}`" in points.split("\n\n")[0], name
    for budget_s, quick_budget_s in budgets:
        assert f"{quick_budget_s:g} s instead of {budget_s:g} s" in section


def test_every_folder_of_examples_has_a_page():
    for folder in (ROOT / "examples").iterdir():
        assert (folder / "README.md").exists(), folder.name


def test_every_page_of_docs_is_listed_in_an_index_and_in_the_site():
    docs = ROOT / "docs"
    index, site = (docs / "README.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    for page in docs.rglob("*.md"):
        path, folder_index = page.relative_to(docs).as_posix(), page.parent / "README.md"
        listed = folder_index.exists() and f"({page.name}" in folder_index.read_text()
        assert page.name == "README.md" or listed or f"({path})" in index, path
        assert f"- {path}\n" in site or path == "README.md", path


def test_tables_of_keys_are_those_of_the_records():
    for page in sorted(file_tables.PAGES.glob("*.md")):
        text = page.read_text()
        assert file_tables.with_tables(text) == text, f"{page.name}: run python -m tools.file_tables"


def test_every_file_format_has_a_table_of_keys():
    shown = {
        f"{module}.{name}" for page in FILE_PAGES for module, name in file_tables.tables(page.read_text())
    }
    for path in (ROOT / "src" / "earlybird" / "data").glob("*.py"):
        module = importlib.import_module(f"earlybird.data.{path.stem}")
        for name, kind in vars(module).items():
            if isinstance(kind, type) and issubclass(kind, Record) and kind.__module__ == module.__name__:
                is_base = kind is Record or name.startswith("_")
                assert is_base or f"{path.stem}.{name}" in shown, f"{path.stem}.{name}"


def test_a_key_without_a_meaning_is_noticed():
    @dataclasses.dataclass
    class Sized(Record):
        """A file.

        Attributes
        ----------
        depth_m : of the water.
        """

        length_m: float

    assert file_tables.undescribed(Sized) == {"length_m", "depth_m"}


def test_pages_show_commands_at_all():
    for name in ("docs/measuring.md", "docs/files/README.md", "README.md"):
        assert shown_commands((ROOT / name).read_text()), name


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```\nearlybird measure pingpong --no-such\n```", "--no-such"),
        ("```console\n$ earlybird pattern mesh --parts 4 \\\n  --nonsense 3\n```", "--nonsense"),
        ("see `earlybird fit run --wrong`", "--wrong"),
        ("```bash\nx=$(earlybird build --mpi mpich --slow | tail -1)\n```", "--slow"),
        ("```\nearlybird exec --mpi mpich -- mpiexec -n 2 ./a.out --theirs\n```", None),
        ("```\nearlybird fit run -o p.json   # --only a remark\n```", None),
        ("`earlybird COMMAND --help`", None),
    ],
)
def test_a_wrong_option_is_noticed(text, fault):
    unknown = [option for arguments in shown_commands(text) for option in unknown_options(arguments)]
    assert unknown == ([fault] if fault else [])


@pytest.mark.parametrize("text", ["`earlybird frobnicate x`", "`earlybird pattern knit -o x.csv`"])
def test_a_wrong_command_is_noticed(text):
    with pytest.raises(AssertionError, match=r"no (sub)?command"):
        unknown_options(shown_commands(text)[0])


FILE_PAGES = sorted(file_tables.PAGES.glob("*.md"))
KERNELS_PAGE = ROOT / "docs" / "developers" / "kernels.md"
READERS = {
    "earlybird.profile/1": profile_from_json,
    "earlybird.prediction/1": prediction_from_json,
    "earlybird.comparison/1": comparison_from_json,
    "earlybird.advice/1": advice_from_json,
}


def file_blocks(language: str) -> list[str]:
    return [text for page in FILE_PAGES for text in blocks(page, language)]


@pytest.mark.parametrize("schema", [*READERS, "earlybird.run/1"])
def test_the_example_of_each_schema_loads(schema, tmp_path):
    examples = [value for value in map(json.loads, file_blocks("json")) if value.get("schema") == schema]
    assert len(examples) == 1
    if schema in READERS:
        written = READERS[schema](examples[0]).to_json()
        assert {key: written[key] for key in examples[0] if key != "levels"} == {
            key: item for key, item in examples[0].items() if key != "levels"
        }
    else:
        (tmp_path / "run.json").write_text(json.dumps(examples[0]))
        assert Run.open(tmp_path).id == examples[0]["id"]


def test_the_example_samples_load_and_come_back_as_they_are():
    examples = [value for value in map(json.loads, file_blocks("json")) if "times_s" in value]
    assert len(examples) == 2
    for example in examples:
        assert sample_from_json(example).to_json() == example


def test_the_example_patterns_and_layout_load(tmp_path):
    tables = {text.split("\n")[0]: text for text in file_blocks("csv")}
    (matrix,) = file_blocks("mtx")
    (tmp_path / "p.csv").write_text(tables["src,dst,bytes"])
    (tmp_path / "p.mtx").write_text(matrix)
    (tmp_path / "l.csv").write_text(tables["rank,node,socket"])
    rows = list(csv.reader(io.StringIO(tables["src,dst,bytes"])))[1:]
    assert load_pattern(tmp_path / "p.csv").triples().tolist() == [
        [int(word) for word in row] for row in rows
    ]
    assert load_pattern(tmp_path / "p.mtx").triples().tolist() == [[3, 0, 100000], [0, 1, 200000]]
    assert parse_layout(str(tmp_path / "l.csv")).num_nodes == 2


def run_script(script: str, folder: Path) -> None:
    environment = dict(os.environ) | {
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    }
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_example_without_mpi_runs(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (script,) = blocks(ROOT / "docs" / "measuring.md", "bash")
    run_script(script, tmp_path)
    errors = json.loads((tmp_path / "synthetic-replay" / "comparison.json").read_text())["error"]
    assert min(errors, key=errors.get) == "staircase"


def printed_examples() -> list[Any]:
    """(command, what the page shows) of every example whose output follows from the repository's files."""
    found = []
    for page in PAGES:
        for body in blocks(page, "console"):
            command, _, shown = body.partition("\n")
            if shown and re.match(r"\$ earlybird (gain|predict|advise) ", command):
                found.append(pytest.param(command, shown, id=f"{name_of(page)}: {command[:60]}"))
    return found


@pytest.mark.parametrize(("command", "shown"), printed_examples())
def test_an_example_prints_what_the_page_shows(command, shown, in_process, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed = in_process(*shlex.split(command.removeprefix("$ earlybird "))).stdout
    assert [line.rstrip() for line in printed.splitlines()] == shown.splitlines()


def test_printed_examples_are_found_on_the_pages_that_promise_them():
    pages = {example.id.partition(":")[0] for example in printed_examples()}
    assert pages >= {"docs/tutorial.md", "docs/models.md", "docs/pipeline-models.md"}


@pytest.mark.mpi
def test_a_kernel_runs_by_hand_as_described(tmp_path, any_mpi):
    (script,) = blocks(KERNELS_PAGE, "bash")
    run_script(script.replace("--mpi mpich", f"--mpi {any_mpi}"), tmp_path)
    record, *samples = map(json.loads, (tmp_path / "samples.ndjson").read_text().splitlines())
    assert "launch_record" in record
    assert samples[1]["config"] == {"size_bytes": 65536, "buffers": "vary", "note": "mine"}


def test_the_example_of_triples_writes_what_the_page_says(tmp_path, monkeypatch):
    (script,) = blocks(KERNELS_PAGE, "python")
    monkeypatch.chdir(tmp_path)
    exec(script, {})
    assert np.fromfile(tmp_path / "pattern.bin", dtype=np.int64).tolist() == [0, 1, 4096, 1, 0, 8192]


def test_citation_holds_what_the_format_requires():
    text = (ROOT / "CITATION.cff").read_text()
    for line in (
        "cff-version: 1.2.0",
        "title: Earlybird",
        f"version: {__version__}",
        "license: BSD-3-Clause",
    ):
        assert re.search(rf"^{re.escape(line)}$", text, re.MULTILINE), line
    assert re.search(r"^date-released: \d{4}-\d{2}-\d{2}$", text, re.MULTILINE)
    assert re.search(r"^message: \S", text, re.MULTILINE)
    assert re.search(r"^authors:\n  - name: \S", text, re.MULTILINE)


def test_citation_parses_with_authors_on_every_reference():
    yaml = pytest.importorskip("yaml", reason="no yaml module is installed; the key lines are checked apart")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert all(reference["title"] and reference["authors"] for reference in citation["references"])
