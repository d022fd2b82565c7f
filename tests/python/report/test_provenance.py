"""What stands above a run's figures in one line."""

from earlybird.report.material import MeasuredRun
from earlybird.report.provenance import run_line


def test_the_line_of_a_run_names_the_virtual_network_it_took():
    launch = {"flavour": "mpich", "version": "5.0.2", "launcher": "cluster"}
    links = "virtual links of 200 Mbit/s each way"
    assert links in run_line(MeasuredRun("a", {}, ({**launch, "network": links},), ()))
    assert "virtual" not in run_line(MeasuredRun("a", {}, (launch,), ()))
