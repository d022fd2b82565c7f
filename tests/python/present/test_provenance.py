"""The provenance of a run, and remedies for doubtful measurements."""

import numpy as np

from earlybird.data.run import Sample
from earlybird.present.material import MeasuredRun
from earlybird.present.subjects.provenance.view import crowd_text, lights, remedies, run_line


def test_the_line_of_a_run_includes_its_virtual_network():
    launch = {"flavour": "mpich", "version": "5.0.2", "launcher": "cluster"}
    links = "virtual links of 200 Mbit/s each way"
    assert links in run_line(MeasuredRun("a", {}, ({**launch, "network": links},), ()))
    assert "virtual" not in run_line(MeasuredRun("a", {}, (launch,), ()))


def test_advice_about_noise_lists_the_measurements():
    def run(name, load, *kernels):
        samples = [
            Sample(kernel, "x", {"mpi": "mpich", "size_bytes": k}, "0", np.ones(5), converged=k > 0)
            for k, kernel in enumerate(kernels)
        ]
        return MeasuredRun(name, {"machine": {"load": load}}, (), tuple(samples))

    def remedies_of(*runs):
        return remedies(runs, [light for run in runs for light in lights(run, len(runs) > 1)])

    first, second = run("first", 0.1, "pingpong", "contention"), run("second", 3.0, "exchange")
    assert remedies_of(first) == ["Noisy (MPICH ping-pong): measure longer with a larger --budget."]
    alone, loaded = remedies_of(first, second)
    assert alone == "Noisy (first: MPICH ping-pong): measure longer with a larger --budget."
    assert loaded.startswith("Noisy (second: MPICH exchange): ") and "its load was 3.0" in loaded
    (both,) = remedies_of(first, run("third", 0.2, "exchange"))
    assert "(first: MPICH ping-pong and third: MPICH exchange)" in both


def test_unsynchronized_clocks_are_reported_with_the_affected_figures():
    def run(time_s):
        config = {"mpi": "mpich", "level": "inter_node", "size_bytes": 8}
        extra = {"clock_residual_s": 2e-6}
        return MeasuredRun(
            "a", {}, (), (Sample("pipeline", "x", config, "0", np.full(5, time_s), extra=extra),)
        )

    (remedy,) = remedies([run(1e-5), run(1e-5)], [])
    assert remedy.startswith("Clocks of different nodes") and "pipeline up to 8 B" in remedy
    assert remedies([run(1e-3)], []) == []


def test_all_thread_levels_of_a_run_are_listed():
    launch = {"flavour": "mpich", "version": "5.0.2", "launcher": "local"}
    launches = tuple({**launch, "thread_level": level} for level in ("single", "multiple", "single"))
    assert "thread level multiple and single" in run_line(MeasuredRun("a", {}, launches, ()))


def test_the_oversubscription_noun_depends_on_the_kernels():
    def noun_of(*kernels):
        samples = tuple(
            Sample(kernel, "x", {"mpi": "mpich", "size_bytes": 1}, "0", np.ones(5), oversubscribed=True)
            for kernel in kernels
        )
        return crowd_text([MeasuredRun("a", {}, (), samples)])

    assert noun_of("pipeline", "msgrate") == "threads"
    assert noun_of("exchange") == "ranks"
    assert noun_of("exchange", "pipeline") == "ranks or threads"


def test_of_many_placements_the_largest_and_the_number_of_others_are_listed():
    def launch(ranks):
        return {"flavour": "mpich", "placement": [{"rank": r, "node": r % 3} for r in range(ranks)]}

    line = run_line(MeasuredRun("a", {}, tuple(map(launch, (10, 2, 3, 4, 6))), ()))
    assert "; 2 ranks on 2 nodes; 3 ranks on 3 nodes; 3 other placements" in line
    assert line.endswith(" up to 10 ranks on 3 nodes")
    few = run_line(MeasuredRun("a", {}, tuple(map(launch, (3, 2))), ()))
    assert few.endswith("2 ranks on 2 nodes; 3 ranks on 3 nodes")
