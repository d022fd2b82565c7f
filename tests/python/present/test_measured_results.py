"""The chapter on results that no other chapter shows; every kernel that is measured is on the page."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from earlybird.data.kernels import COMPLETION, PACKING, kernel_of
from earlybird.data.profile import profile_from_json
from earlybird.data.run import Sample
from earlybird.measure.suites import SUITES
from earlybird.present import core
from earlybird.present.contents import contents
from earlybird.present.material import Material, MeasuredRun
from earlybird.present.render import html as page
from earlybird.present.render.text import render

# A point of any kernel.
CONFIG = {
    "mpi": "mpich", "level": "intra_socket", "size_bytes": 65536, "competitors": 2, "repeats": 1,
    "receiver": "prompt", "threads": 2, "partitions": 2, "gamma_s_per_byte": 1e-9, "compute_s": 1e-3,
    "noise": "none", "noise_share": 0.0, "cache": "hot", "ranks": 4, "layout": "1x1x4", "map_by": "core",
    "operation": "bcast", "root": 0, "window": 64, "contexts": 0, "packing": "strided", "scaling": "strong",
    "cells": "8x8x8", "process_grid": "2x2x1", "stencil": 7, "periodic": False, "variables": 1,
    "buffers": "packed",
}  # fmt: skip
METHODS = {
    "msgrate": "shared", "collective": "binomial", "packing": "pack", "pipeline": "many",
    "partitioned": "many",
}  # fmt: skip
TIME_S = 1.234e-3
# When partitions of a partitioned sample of five iterations were ready and arrived, and threads computed.
MOMENTS = {
    key: np.full((5, 2), TIME_S / 2).tolist() for key in ("ready_s", "returned_s", "arrived_s", "compute_s")
} | {key: [TIME_S] * 5 for key in ("joined_s", "completed_s")}


def samples(kernel, **config):
    method = METHODS.get(kernel, kernel_of(kernel).reference or None)
    times_s = np.full(5, TIME_S)
    extra = MOMENTS if kernel == "partitioned" else {}
    return tuple(
        Sample(kernel, kernel_of(kernel).quantity, CONFIG | config, str(launch), times_s, method=method,
               extra=extra)
        for launch in range(3)
    )  # fmt: skip


def material(*parts):
    launches = tuple({"id": str(k), "flavour": "mpich"} for k in range(3))
    return Material(runs=(MeasuredRun("run", {}, launches, sum(parts, ())),))


@pytest.mark.parametrize("kernel", SUITES)
def test_the_results_of_every_kernel_are_on_the_page_and_in_the_terminal(kernel):
    given = material(samples(kernel))
    chapters = [chapter for name, chapter in contents(given).chapters.items() if name != "measured"]
    shown = [table for chapter in chapters for table in (*chapter.shown, *chapter.tables)]
    assert any(table.rows for table in shown)
    assert any(table.rows for chapter in chapters for table in chapter.brief)


def test_packing_and_what_another_benchmark_measured_have_tables_with_their_times():
    given = material(samples(PACKING.name), samples("osu-bibw"), samples(COMPLETION.name))
    for text in (page.render(given), render(given)):
        assert "What else was measured?" in text
        assert all(part in text for part in ("1.23 ms", "Packing of irregular data", "strided", "Osu-bibw"))


def test_a_kernel_with_a_chapter_of_its_own_is_not_shown_twice():
    assert "results" not in contents(material(samples("pipeline"), samples("collective"))).chapters


def test_the_packing_costs_of_a_profile_are_in_the_report():
    form = {
        "what": {"operation": "packing", "packing": "indexed", "cache": "cold", "method": "unpack"},
        "form": "table",
        "parameters": {"size_bytes": [8, 8000], "time_s": [1e-7, 1e-5]},
    }
    given = Material(
        profiles=(profile_from_json({"schema": "earlybird.profile/1", "levels": {}, "forms": [form]}),)
    )
    for text in (page.render(given), render(given)):
        assert all(part in text for part in ("indexed", "unpack", "100 ns .. 10 us", "800 MB/s"))


def test_the_words_for_shared_cores_stand_once():
    package = Path(core.__file__).parents[1]
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                assert not re.search("more (ranks|threads) than cores", node.value), (path, node.value)
