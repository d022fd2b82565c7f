"""Kernels are described in one place: other files name few of them, and read the record of any kernel."""

from pathlib import Path

import numpy as np
import pytest

from earlybird.data import kernels
from earlybird.data.kernels import KERNELS, Column, Kernel
from earlybird.data.layout import parse_layout
from earlybird.data.results import Result
from earlybird.data.run import Run, Sample
from earlybird.data.schema import Estimate
from earlybird.measure.groups import Group
from earlybird.measure.suites import SUITES
from earlybird.present.subjects.measured.terminal import print_samples

PACKAGE = Path(__file__).parents[3] / "src" / "earlybird"
MAX_FILES = 6
# Words that often name something else: what, and in which files.
OTHER_MEANINGS = {
    "exchange": {
        "a benchmark of IMB": "interop/imb_outputs.py",
        "what is predicted": "cli/commands/predict.py",
        "the messages of a pattern": "cli/commands/show.py present/subjects/exchange/tables.py "
        "present/subjects/exchange/view.py",
        "a chapter": "present/contents.py present/subjects/exchange/chapter.py",
    },
    "pipeline": {
        "an algorithm of collectives": "data/mpi_algorithms.py data/labels.py measure/collective_methods.py "
        "present/core/axes.py",
        "a form": "data/pipeline_form.py present/subjects/pipelines/chapter.py",
        "what advice is about": "cli/commands/advise.py cli/commands/predict.py "
        "present/subjects/advice/terminal.py "
        "present/subjects/advice/view.py",
    },
    "partitioned": {
        "a method": "advise/pipelined.py data/labels.py data/methods.py measure/library_methods.py "
        "measure/pipeline.py papers/gillis/plan.py present/core/axes.py",
        "a capability": "cli/commands/doctor.py",
        "a layout": "advise/layout.py",
        "a chapter": "present/contents.py present/subjects/partitioned/chapter.py "
        "present/subjects/partitioned/figures.py",
    },
    "collective": {
        "what advice is about": "cli/commands/advise.py cli/commands/predict.py "
        "present/subjects/advice/terminal.py",
        "a kind of call": "present/subjects/recording/terminal.py",
        "a column": "present/subjects/collectives/tables.py present/subjects/collectives/terminal.py",
        "a change of a program": "data/projection.py record/program_changes.py",
    },
    "packing": {
        "a key of replays and predictions": "measure/replays.py measure/suites.py predict/packing.py "
        "present/subjects/exchange/view.py",
    },
    "check": {
        "a command": "cli/commands/baseline.py cli/commands/check.py cli/main.py cli/session/batch_script.py",
        "a file": "data/check.py interop/junit.py",
        "a verification": "compare/guidelines.py present/subjects/collectives/chapter.py "
        "present/subjects/guidelines/chapter.py present/subjects/guidelines/terminal.py",
        "a chapter": "present/contents.py present/subjects/check/chapter.py",
    },
}


SOURCES = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}


def files_with(name):
    """The files with a string that is `name`."""
    literals = (f'"{name}"', f"'{name}'")
    return {path for path, source in SOURCES.items() if any(one in source for one in literals)}


@pytest.mark.parametrize("name", KERNELS)
def test_few_files_name_a_kernel(name):
    others = {path for paths in OTHER_MEANINGS.get(name, {}).values() for path in paths.split()}
    naming = sorted(files_with(name) - others)
    assert len(naming) <= MAX_FILES, f"{len(naming)} files name the kernel {name}: {', '.join(naming)}"


def test_every_suite_measures_a_kernel():
    assert set(SUITES) <= set(KERNELS)


def test_an_unknown_kernel_is_an_error_before_anything_is_measured():
    with pytest.raises(ValueError, match="no kernel 'pingpng'"):
        Group("pingpng", parse_layout("1x1x2"), ({"size_bytes": 8},))


DUPLEX = Kernel(
    "duplex",
    "both directions",
    "time_per_message",
    lambda point, *_: 3 * point["size_bytes"],
    reference="turns",
    workers="threads",
    columns=(
        Column("depth", "depth", common=True, meaning="messages that are sent before the first is received"),
        Column("method", "method", "name"),
        Column("time_s", "time", "seconds"),
        Column("speed_up", "speed-up over turns", "ratio", optional=True),
    ),
    order=("depth",),
)


def test_whatever_shows_results_reads_the_record_of_a_kernel(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(KERNELS, DUPLEX.name, DUPLEX)
    config = {"mpi": "mpich", "size_bytes": 8}
    group = Group("duplex", parse_layout("2x1x1"), (config,), link_bytes_per_s=48.0, methods=("a", "b"))
    assert group.link_s(config) == 1.0
    samples = [
        Sample(
            "duplex", "time_per_message", config | {"depth": depth}, "0", np.full(9, time_s), method=method,
            rounds=np.arange(9), oversubscribed=True,
        )
        for depth in (4, 2)
        for method, time_s in (("turns", 4e-6), ("at once", 1e-6))
    ]  # fmt: skip
    run = Run.create(tmp_path / "run", machine={}, command=[], seed=1)
    print_samples(run, samples, "table")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[2:7]] == [
        ["depth", "method", "time", "speed-up", "over", "turns"],
        ["2", "turns", "4", "us"],
        ["at", "once", "1", "us", "4.00"],
        ["4", "turns", "4", "us"],
        ["at", "once", "1", "us", "4.00"],
    ]
    assert "depth: messages that are sent before the first is received" in lines
    assert any("speed-up over turns:" in line for line in lines)
    assert not any(line.startswith("interval") for line in lines)  # the table has none


def test_results_without_a_value_are_first_and_texts_after_numbers():
    depths = ("deep", 3, None, 1)
    found = [Result("duplex", "time", "", {"depth": depth}, Estimate.exact(1.0), 0.0, 1) for depth in depths]
    ordered = sorted(found, key=DUPLEX.sort_key)
    assert [result.config.get("depth") for result in ordered] == [None, 1, 3, "deep"]


def test_kernels_of_other_benchmarks_are_described_in_general_terms():
    kernel = kernels.kernel_of("osu-multi-latency")
    assert (kernel.title, kernel.fit, kernel.reference) == ("osu-multi-latency", "", "")
    assert not kernel.is_fitted([{"size_bytes": 8}])
