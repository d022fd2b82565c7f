"""What a paper measures with a launcher, and the sentence on how long that takes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from earlybird.data.contexts import has_contexts
from earlybird.data.errors import InputError
from earlybird.data.methods import CONTEXTS
from earlybird.data.run import Sample
from earlybird.launch.synthetic import SyntheticLauncher
from earlybird.measure.effort import Effort, remarks_on
from earlybird.measure.groups import Library, Options, Resources
from earlybird.measure.msgrate import msgrate_groups
from earlybird.measure.planned import check_groups, refuse_kernels
from earlybird.measure.session import Result
from earlybird.papers.planned import PlannedPaper, estimate
from earlybird.papers.registry import PAPERS
from earlybird.present.material import Material, MeasuredRun

LOCAL = SimpleNamespace(name="local", flavour="mpich")
SIMULATED = SimpleNamespace(name="simgrid", flavour="simgrid")


def planned(launcher=LOCAL):
    resources = replace(Resources.of(4, 1), family="mpich", library=Library("mpich"))
    steps = PAPERS["thune"].plan(Options(quick=True), resources, "mpich")
    return PlannedPaper("thune", launcher, resources, steps)


def test_an_estimate_is_the_budget_or_says_why_it_is_more():
    assert "takes about 600 s (change it" in estimate([planned()], Effort(5, 600.0))
    short = estimate([planned()], Effort(5, 1.0))
    assert "more than the budget of 1 s, because every point gets one launch" in short
    # Further launches are left out when the budget is spent.
    assert estimate([planned()], Effort(50, 1.0)).split("takes")[1] == short.split("takes")[1]


def test_drawn_times_take_no_time():
    drawn = estimate([planned(SyntheticLauncher(lambda *_: None))], Effort(5, 1.0))
    assert drawn.startswith("drawing times of ") and "takes" not in drawn


@pytest.mark.parametrize(
    ("kernel", "launcher", "text", "sentence"),
    [
        ("msgrate", SyntheticLauncher(lambda *_: None), "synthetic:p", "does not describe msgrate"),
        ("pipeline", SIMULATED, "simgrid:m", "simulated ranks do not support; give another --launcher"),
    ],
)
def test_what_a_launcher_cannot_run_is_refused(kernel, launcher, text, sentence):
    with pytest.raises(InputError, match=sentence):
        refuse_kernels(["pingpong", "exchange", kernel], launcher, text)


def test_nothing_to_measure_is_refused():
    with pytest.raises(InputError, match="there is nothing to measure: because"):
        check_groups([], LOCAL, "because")


@pytest.mark.parametrize(
    ("effort", "rule"),
    [
        (Effort(1, 1.0, target=0.25), "25 % within"),
        (Effort(1, 1.0), "2 % within"),
        (Effort(1, 1.0, paper=True), "5 % in 50 attempts"),
    ],
)
def test_samples_that_did_not_converge_are_named_with_their_target(effort, rule):
    sample = Sample("pingpong", "half_round_trip", {}, "0", np.full(9, 1e-6), converged=False)
    (remark,) = remarks_on(Result([sample], 0, 0.1), effort, "")
    assert f"1 of 1 samples did not converge to {rule}" in remark or f"the paper's {rule}" in remark


@pytest.mark.parametrize(("family", "allowed"), [("mpich", True), ("intel", True), ("openmpi", False)])
def test_every_suite_and_paper_asks_the_same_families_for_contexts(family, allowed):
    resources = replace(Resources.of(4, 1), family=family, library=Library(family))
    by_suite = {m for group in msgrate_groups(Options(), resources, family) for m in group.methods}
    (step,) = PAPERS["threads"].plan(Options(), resources, family)
    by_paper = {method for group in step.groups for method in group.methods}
    assert (CONTEXTS in by_suite) == (CONTEXTS in by_paper) == has_contexts(family) == allowed


def test_a_run_knows_the_family_of_each_mpi():
    samples = [Sample("pingpong", "q", {"mpi": mpi}, mpi, np.ones(3)) for mpi in ("a", "b")]
    launches = ({"id": "a", "library_version": "MPICH 4.3"}, {"id": "b", "library_version": "Open MPI v5"})
    run = MeasuredRun("run", {}, launches, tuple(samples))
    assert [run.family(mpi) for mpi in ("a", "b", "c")] == ["mpich", "openmpi", None]


@pytest.mark.parametrize("name", ["gillis", "temucin", "thune"])
def test_a_chapter_computes_its_material_once(name, monkeypatch):
    from earlybird.papers import gillis, temucin, thune

    module, computing = {
        "gillis": (gillis, "reproducing"), "temucin": (temucin, "throughputs"), "thune": (thune, "sweeps"),
    }[name]  # fmt: skip
    calls = []
    monkeypatch.setattr(module, computing, lambda material: calls.append(material) or [])
    PAPERS[name].chapter(Material())
    assert len(calls) == 1
