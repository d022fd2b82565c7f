"""What stands above a run's figures: its provenance, and what to do where they are in doubt."""

import numpy as np

from earlybird.data.run import Sample
from earlybird.report.material import MeasuredRun
from earlybird.report.provenance import remedies, run_line


def test_the_line_of_a_run_names_the_virtual_network_it_took():
    launch = {"flavour": "mpich", "version": "5.0.2", "launcher": "cluster"}
    links = "virtual links of 200 Mbit/s each way"
    assert links in run_line(MeasuredRun("a", {}, ({**launch, "network": links},), ()))
    assert "virtual" not in run_line(MeasuredRun("a", {}, (launch,), ()))


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
