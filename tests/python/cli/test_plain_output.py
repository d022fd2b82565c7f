"""Whatever names a file has, what commands print and write has no controls, formulas or markup of theirs."""

import ast
import base64
import copy
import csv
import gzip
import io
import json
import pty
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from earlybird.cli.session.progress import ProgressLine
from earlybird.data.plain_text import plain
from earlybird.data.run import Run, Sample
from earlybird.present.core.table import text_table
from earlybird.present.render.html import _plain_texts
from earlybird.present.render.notes import note
from earlybird.present.render.streams import PlainStream
from earlybird.present.render.terminal import markdown_table, print_rows
from tests.recordings import on_disk, ring

GOLDEN = Path(__file__).parents[2] / "recorded" / "golden"
SOURCES = Path(__file__).parents[3] / "src" / "earlybird"
FILES = sorted({path.name for path in GOLDEN.glob("*.json")} - {"simulated-machine-1.json"})  # has no names
OF_REPORT = [name for name in FILES if name not in ("baseline-1.json", "projection-1.json")]
WITH_TESTCASES = ["check-1.json", "guidelines-1.json", "run-comparison-1.json"]
# What every name in a file begins with.
HOSTILE = (
    "=1+\x1b[31m\x07\r\x9b2J\x1b]8;;http://x\x1b\\\u202e\u2066\u200b\u00ad\x7f\x00\ufffe\nforged: line\t|<b>"
    "&#8238;[x](y)`id`{0}$(id)\udcff\ud800"
)
KEY = HOSTILE[:-2]  # without halves of surrogate pairs, which are refused in keys
FORGED = re.compile(r"^forged", re.MULTILINE)


def each_text(value, path=()):
    """The path of each text in a JSON value, and the text."""
    if isinstance(value, str):
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from each_text(item, (*path, key))


def with_prefix(value, paths):
    """A copy with HOSTILE before the texts at these paths."""
    value = copy.deepcopy(value)
    for *outer, last in paths:
        inner = value
        for key in outer:
            inner = inner[key]
        inner[last] = HOSTILE + inner[last]
    return value


@pytest.fixture
def plant(in_process, tmp_path):
    """plant(name): a golden JSON file with hostile texts wherever `earlybird show` accepts them."""

    def accepts(path, value):
        path.write_text(json.dumps(value))
        result = in_process("show", path, check=False)
        assert result.returncode in (0, 2), result.stderr
        return result.returncode == 0

    def spoil(path, value, paths):
        """All of them at once, else each half."""
        spoiled = with_prefix(value, paths)
        if accepts(path, spoiled):
            return spoiled
        if len(paths) == 1:
            return value
        half = len(paths) // 2
        return spoil(path, spoil(path, value, paths[:half]), paths[half:])

    def run(name):
        path, value = tmp_path / name, json.loads((GOLDEN / name).read_text())
        value = spoil(path, value, [path for path, _ in each_text(value)])
        path.write_text(json.dumps(value))
        assert "\\u202e" in path.read_text(), "nothing hostile is accepted"
        return path

    return run


@pytest.fixture
def hostile_run(tmp_path):
    """hostile_run(name): a run of two pingpongs; its host, MPI, versions, settings and levels are hostile."""

    def make(name, factor=1.0):
        run = Run.create(
            tmp_path / name,
            machine={"host": HOSTILE, "cores": 2},
            command=["earlybird", HOSTILE],
            seed=1,
            settings={"mpi": HOSTILE, "network": HOSTILE, KEY: HOSTILE},
        )
        for launch in range(3):
            run.append_launch(
                {"id": str(launch), "mpi": HOSTILE, "hosts": [HOSTILE], "version": HOSTILE + name}
            )
            run.append_samples(
                Sample(
                    kernel="pingpong",
                    quantity="half_round_trip",
                    method="",
                    config={
                        "mpi": f"mpich-{HOSTILE}",
                        "size_bytes": size,
                        "level": HOSTILE,
                        KEY: HOSTILE,
                    },
                    launch=str(launch),
                    times_s=np.array([1e-6, 1.1e-6, 1e-6]) * factor,
                    warmup=1,
                    batch=1,
                    converged=True,
                    oversubscribed=False,
                    validated=True,
                )
                for size in (8, 1024)
            )
        return run.path

    return make


def assert_plain(text):
    assert plain(text) == text
    text.encode()


def assert_lines(text):
    """Plain, and no name of a file begins a line."""
    assert_plain(text)
    assert not FORGED.search(text)


def assert_csv(text):
    assert_plain(text)
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [cell for cell in cells if re.match(r"[=@+\t]|-(?![\d.]|inf|nan)", cell)]


@pytest.mark.parametrize("name", FILES)
def test_what_is_shown_of_a_file_is_plain(plant, in_process, name):
    path = plant(name)
    assert_lines(in_process("show", path).stdout)
    json.loads(in_process("show", path, "--json").stdout)
    assert_csv(in_process("show", path, "--format", "csv").stdout)


@pytest.mark.parametrize("name", WITH_TESTCASES)
def test_testcases_are_xml(plant, in_process, name):
    text = in_process("show", plant(name), "--format", "junit").stdout
    assert_lines(text)
    attributes = [value for one in ElementTree.fromstring(text).iter() for value in one.attrib.values()]
    assert any("\\u202e" in value for value in attributes)


def test_a_comparison_of_runs_is_plain_in_every_format(hostile_run, in_process):
    before, after = hostile_run("before"), hostile_run("after", 2.0)
    for format in ("table", "junit", "markdown"):
        result = in_process("compare", before, after, "--format", format, check=False)
        assert_lines(result.stdout)
        assert_lines(result.stderr)
        if format == "junit":
            ElementTree.fromstring(result.stdout)
        if format == "markdown":
            assert not re.search(r"(?<!\\)(<b>|&#8238;|\[x\]|`id`)", result.stdout)
            rows = [line for line in result.stdout.splitlines() if line.startswith("|")]
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert_csv(in_process("compare", before, after, "--format", "csv", check=False).stdout)


def test_a_run_is_plain_when_it_is_shown_or_exported(hostile_run, in_process, tmp_path):
    run = hostile_run("run")
    assert_lines(in_process("show", run).stdout)
    assert_csv(in_process("show", run, "--format", "csv").stdout)
    in_process("export", run, "--to", "openmetrics", "-o", "run.prom")
    assert_lines((tmp_path / "run.prom").read_text())


def test_a_key_that_is_no_text_is_refused(hostile_run, in_process, refused):
    run = hostile_run("run")
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(header | {"\udcff": 1}))
    refused(in_process("show", run, check=False), "is not text")


def test_a_recording_is_plain(in_process, tmp_path):
    recording = on_disk(tmp_path / "rec", 2, ring(2), host=lambda rank: HOSTILE)
    functions = {"/bin/app": {"101": HOSTILE, "201": HOSTILE}}
    (recording / "functions.json").write_text(
        json.dumps({"schema": "earlybird.recording/1", "functions": functions, "lines": {}})
    )
    (recording / "recording.json").write_text(
        json.dumps({"schema": "earlybird.recording/1", "command": ["mpiexec", HOSTILE]})
    )
    assert_lines(in_process("show", recording).stdout)
    assert_csv(in_process("show", recording, "--format", "csv").stdout)
    assert_plain(in_process("report", recording, "--terminal").stdout)


def test_a_report_is_plain_on_the_page_and_on_the_terminal(plant, hostile_run, in_process, tmp_path):
    paths = [*(plant(name) for name in OF_REPORT), hostile_run("run")]
    assert_plain(in_process("report", *paths, "--terminal").stdout)
    in_process("report", *paths, "-o", "page.html")
    page = (tmp_path / "page.html").read_bytes().decode()
    head, _, scripts = page.partition('id="figures">')
    assert_plain(head)
    assert "<b>&#8238;" not in head and "\\u202e" in head
    figures = json.loads(gzip.decompress(base64.b85decode(scripts.partition("</script>")[0])))
    shown = [text for path, text in each_text(figures) if path[-1] != "legendgroup"]
    assert shown and all(plain(text) == text and "<b>&#8238;" not in text for text in shown)


def test_arrays_and_keys_of_figures_are_plain():
    shown = _plain_texts({"data": [{"x": np.array([HOSTILE]), "y": np.arange(2), KEY: (HOSTILE,)}]})
    assert plain(text := str(shown)) == text and not FORGED.search(text)
    assert shown["data"][0]["y"] == [0, 1]


def test_the_head_of_a_table_in_markdown_has_no_markup():
    assert markdown_table(text_table("", ["a|b", "<b>"], [["1", "2"]]))[0] == r"| a\|b | \<b> |"


def test_names_of_files_and_options_are_plain_in_errors(in_process):
    for arguments in (
        ["show", HOSTILE[4:]],
        ["fit", HOSTILE[4:]],
        ["measure", HOSTILE],
        ["--" + HOSTILE],
        [HOSTILE],
    ):
        assert_lines(in_process(*arguments, check=False).stderr)


def test_only_own_escapes_reach_a_terminal(monkeypatch):
    master, slave = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with open(master, "rb", buffering=0) as shown, open(slave, "w") as terminal:
        for name in ("stdout", "stderr"):
            monkeypatch.setattr(f"sys.{name}", PlainStream(terminal))
        print_rows(["node"], [[HOSTILE]], left=["node"])
        progress = ProgressLine()
        progress.update(1, 4, HOSTILE, 3.0, None)
        note(HOSTILE)
        progress.close()
        terminal.flush()
        text = shown.read(1 << 16).decode()
    assert "\\u001b]8;;" in text and "\x1b[" in text
    own = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
    assert_plain(own.sub("", text))


def calls(*names):
    """The calls of these functions in commands, as (place, call)."""
    for path in sorted([*(SOURCES / "cli").rglob("*.py"), *(SOURCES / "present").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
                yield f"{path.relative_to(SOURCES)}:{node.lineno}", node


def test_only_the_printing_functions_print():
    """Of the text of others they make plain lines."""
    own = ("present/render/", "cli/main.py", "cli/parser.py")
    places = [place for place, _ in calls("print", "sys.stdout.write", "sys.stderr.write")]
    assert not [place for place in places if not place.startswith(own)]


def test_a_printed_line_is_one_line():
    texts = [(place, ast.unparse(call)) for place, call in calls("print_line", "note")]
    assert len(texts) > 100
    assert not [place for place, text in texts if re.search(r"(?<!\\)\\n", text)]
