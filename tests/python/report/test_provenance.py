"""What stands above a run's figures: its provenance, and what to do where they are in doubt."""

import numpy as np

from earlybird.data.run import Sample
from earlybird.report.material import MeasuredRun
from earlybird.report.provenance import crowd_words, lights, remedies, run_line


def test_the_line_of_a_run_names_the_virtual_network_it_took():
    launch = {"flavour": "mpich", "version": "5.0.2", "launcher": "cluster"}
    links = "virtual links of 200 Mbit/s each way"
    assert links in run_line(MeasuredRun("a", {}, ({**launch, "network": links},), ()))
    assert "virtual" not in run_line(MeasuredRun("a", {}, (launch,), ()))


def test_an_advice_against_noise_names_the_measurements_it_is_for():
    def run(name, load, *kernels):
        samples = [
            Sample(kernel, "x", {"mpi": "mpich", "size_bytes": k}, "0", np.ones(5), converged=k > 0)
            for k, kernel in enumerate(kernels)
        ]
        return MeasuredRun(name, {"machine": {"load": load}}, (), tuple(samples))

    def told(*runs):
        return remedies(runs, [light for run in runs for light in lights(run, len(runs) > 1)])

    first, second = run("first", 0.1, "pingpong", "contention"), run("second", 3.0, "exchange")
    assert told(first) == ["Noisy (MPICH ping-pong): give more time with a larger --budget."]
    alone, loaded = told(first, second)
    assert alone == "Noisy (first: MPICH ping-pong): give more time with a larger --budget."
    assert loaded.startswith("Noisy (second: MPICH exchange): ") and "its load was 3.0" in loaded
    (both,) = told(first, run("third", 0.2, "exchange"))
    assert "(first: MPICH ping-pong and third: MPICH exchange)" in both


def test_a_run_whose_clocks_are_apart_says_which_figures_are_doubtful():
    def run(time_s):
        config = {"mpi": "mpich", "level": "inter_node", "size_bytes": 8}
        extra = {"clock_residual_s": 2e-6}
        return MeasuredRun(
            "a", {}, (), (Sample("pipeline", "x", config, "0", np.full(5, time_s), extra=extra),)
        )

    (told,) = remedies([run(1e-5), run(1e-5)], [])
    assert told.startswith("Clocks of different nodes") and "pipeline up to 8 B" in told
    assert remedies([run(1e-3)], []) == []


def test_all_thread_levels_of_a_run_are_named():
    launch = {"flavour": "mpich", "version": "5.0.2", "launcher": "local"}
    launches = tuple({**launch, "thread_level": level} for level in ("single", "multiple", "single"))
    assert "thread level multiple and single" in run_line(MeasuredRun("a", {}, launches, ()))


def test_what_was_more_than_cores_is_named_by_what_was_measured():
    def told(*kernels):
        samples = tuple(
            Sample(kernel, "x", {"mpi": "mpich", "size_bytes": 1}, "0", np.ones(5), oversubscribed=True)
            for kernel in kernels
        )
        return crowd_words([MeasuredRun("a", {}, (), samples)])

    assert told("pipeline", "msgrate") == "threads"
    assert told("exchange") == "ranks"
    assert told("exchange", "pipeline") == "ranks or threads"


def test_of_many_placements_the_one_of_most_ranks_is_told_and_how_many_are_not():
    def launch(ranks):
        return {"flavour": "mpich", "placement": [{"rank": r, "node": r % 3} for r in range(ranks)]}

    told = run_line(MeasuredRun("a", {}, tuple(map(launch, (10, 2, 3, 4, 6))), ()))
    assert "; 2 ranks on 2 nodes; 3 ranks on 3 nodes; 3 other placements" in told
    assert told.endswith(" up to 10 ranks on 3 nodes")
    few = run_line(MeasuredRun("a", {}, tuple(map(launch, (3, 2))), ()))
    assert few.endswith("2 ranks on 2 nodes; 3 ranks on 3 nodes")
