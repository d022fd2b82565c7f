"""`earlybird reproduce`: the folder of a paper, its table, continuing, and what is refused."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from earlybird.data.run import Run
from earlybird.launch.synthetic import SyntheticLauncher
from earlybird.papers.registry import PAPERS
from earlybird.present.material import Material

LEVEL = {"protocols": [{"min_bytes": 0, "latency_s": 1e-6, "bandwidth_bytes_per_s": {"1": 1e9, "2": 1.5e9}}]}
PROFILE = {"schema": "earlybird.profile/1", "id": "known", "levels": {"intra_socket": LEVEL}}
GIVEN = ("--quick", "--launcher", "synthetic:known.json", "--launches", "1", "--quiet")


@pytest.fixture(autouse=True)
def known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("known.json").write_text(json.dumps(PROFILE))


def test_without_a_paper_it_lists_the_papers(run_main):
    status, out, _ = run_main("reproduce")
    assert status == 0 and "Gillis et al. 2023" in out and "early-bird communication" in out


def test_a_paper_is_measured_printed_and_continued(run_main):
    status, out, err = run_main("reproduce", "gillis", *GIVEN, "--json", "-o", "papers/gillis")
    assert status == 0, err
    assert "drawing times of " in err and "takes" not in err and "(paper: 32)" in err
    value = json.loads(out)
    rows = {row["figure"]: row for row in value["rows"]}
    assert rows["figure 5"]["paper"] == "29.76" and value["folder"] == "papers/gillis"
    assert "What do the figures of Gillis et al. 2023" in Path("papers/gillis/report.html").read_text()
    run = Run.open("papers/gillis/synthetic/pipeline")
    first = len(run.samples())
    status, _, err = run_main(
        "reproduce", "gillis", "--resume", "--launches", "2", "--quiet", "-o", "papers/gillis"
    )
    assert status == 0 and len(run.samples()) == 2 * first, err
    status, _, err = run_main("reproduce", "gillis", "--resume", "--threads", "3", "-o", "papers/gillis")
    assert status == 2 and err.startswith("earlybird: --threads is 3, but papers/gillis/"), err
    status, out, _ = run_main("report", str(run.path), "--terminal")
    assert status == 0 and "What do the figures of Gillis et al. 2023" in out


def test_a_step_that_fails_keeps_no_other_from_being_measured(run_main, monkeypatch):
    launch = SyntheticLauncher.launch

    def fails_in_figure_3(self, request, scratch, progress):
        launched = launch(self, request, scratch, progress)
        return replace(launched, samples=[], cause="it hung") if request.kernel == "exchange" else launched

    monkeypatch.setattr(SyntheticLauncher, "launch", fails_in_figure_3)
    status, out, err = run_main("reproduce", "thune", *GIVEN, "--json", "-o", "t")
    assert status == 1 and "steps failed; the first: exchange" in err and "it hung" in err
    rows = json.loads(out)["rows"]
    assert {row["figure"] for row in rows if row["here"]} == {"Table I"}
    assert [row["note"][:12] for row in rows if row["figure"] == "figure 3"] == ["not measured"]
    assert Path("t/report.html").exists() and Path("t/synthetic/profile.json").exists()
    monkeypatch.setattr(SyntheticLauncher, "launch", launch)
    status, out, err = run_main("reproduce", "thune", "--resume", "--quiet", "--json", "-o", "t")
    assert status == 0, err
    assert {row["figure"] for row in json.loads(out)["rows"] if row["here"]} >= {"figure 3", "Table II"}


def test_statements_of_temucin_are_compared(run_main):
    status, out, err = run_main("reproduce", "temucin", *GIVEN, "--sizes", "1KiB,4MiB", "--json")
    assert status == 0, err
    rows = json.loads(out)["rows"]
    # The known MPI sends all at the last MPI_Pready: no noise gains anything.
    found = {row["note"] for row in rows if row["quantity"] == "by noise model, largest buffer"}
    # How little it gains is within the interval of a single launch.
    assert found == {"libearlybird; agrees", "MPI partitioned communication; unclear"}
    assert "Sweep3D and Halo3D are left out" in err
    assert [row["note"][:12] for row in rows if row["figure"] == "Sweep3D"] == ["not measured"] * 4


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("gilis",), "gillis"),
        (("gillis", "--resume", "-o", "nothing"), "nothing has no run to continue"),
        (("gillis", "-o", "used"), "used exists already"),
        (("gillis", "-o", "known.json"), "known.json is a file"),
        (("gillis", "--resume", "-o", "known.json"), "known.json is a file"),
        (("gillis", "--resume", "-o", "used"), "used has no figures of a paper"),
        (("thune", "--sizes", "1,2", "--launcher", "synthetic:known.json", "-o", "x"), "give 2 B to 512 MiB"),
        (("thune", "--sizes", "1TiB", "--launcher", "synthetic:known.json", "-o", "x"), "--sizes has"),
        (("gillis", "--threads", "1,2", "--launcher", "synthetic:known.json", "-o", "x"), "give one"),
        (("gillis", "--budget", "soon", "-o", "x"), "--budget"),
        (("threads", "--launcher", "synthetic:known.json", "-o", "x"), "does not describe msgrate"),
        (("gillis", "--threads", "0", "--launcher", "synthetic:known.json", "-o", "x"), "--threads has '0'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(run_main, arguments, expected):
    Path("used").mkdir()
    Path("used/file").write_text("")
    status, _, err = run_main("reproduce", *arguments)
    assert status == 2 and expected in err and len(err.strip().splitlines()) == 1
    assert not Path("x").exists()


def test_the_option_of_measure_names_the_command(run_main):
    status, _, err = run_main("measure", "pipeline", "--reproduce", "gillis", "-o", "run")
    assert status == 2 and "`earlybird reproduce PAPER -o DIR`" in err


def test_the_command_prints_the_same_rows(run_main):
    status, out, _ = run_main("reproduce", "gillis", "--published", "--json")
    value = json.loads(out)
    assert status == 0 and value["citation"] == "Gillis et al. 2023"
    assert [row["paper"] for row in value["rows"]] == [row.paper for row in PAPERS["gillis"].rows(Material())]
    status, out, _ = run_main("reproduce", "gillis", "--published", "--format", "csv")
    assert status == 0 and out.splitlines()[0] == "figure,quantity,paper,here,note,mpi"


def test_table_i_is_recovered_from_times_drawn_from_it(run_main):
    given = ("--quick", "--launcher", "synthetic:thune-epyc-rome", "--launches", "1", "--quiet")
    status, out, err = run_main("reproduce", "thune", *given, "--json", "-o", "t")
    assert status == 0, err
    rows = json.loads(out)["rows"]
    for row in rows:
        if row["figure"] == "Table I":
            of_rome = float(row["paper"].split(" / ")[3])
            assert float(row["here"]) == pytest.approx(of_rome, rel=0.05), row
    (sweep,) = [row for row in rows if row["figure"] == "figure 3"]
    assert float(sweep["here"].split()[0]) < 20 and "max-rate" in sweep["note"]
    on_sockets = [row["here"] for row in rows if row["figure"] == "Table II"][:2]
    assert float(on_sockets[0].split()[0]) < float(on_sockets[1].split()[0])
    assert Path("t/synthetic/profile.json").exists()
    page = Path("t/report.html").read_text()
    # The page is about the paper: its chapter comes first, and draws the exchanges of figure 3 alone.
    questions = re.findall(r"<h2[^>]*>.*?</h2>", page, re.DOTALL)
    assert "What do the figures of Thune et al. 2023" in questions[1]
    assert "until the slowest ends: table2" in page and "until the slowest ends: figure3" not in page
