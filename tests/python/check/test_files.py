"""A check as a file, JUnit, a chapter of the report, and a printed table."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from earlybird.data.check import LINK, NODE, Check, CheckedNode, Finding, check_from_json, load_check
from earlybird.data.errors import InputError
from earlybird.data.run import Run, Sample
from earlybird.interop.junit import check_junit_xml
from earlybird.present.contents import contents
from earlybird.present.material import Material, collect
from earlybird.present.render.html import render
from earlybird.present.render.text import render as render_terminal
from earlybird.present.subjects.check.answer import verdict
from earlybird.present.subjects.check.chapter import check_chapter

GOLDEN = Path(__file__).parents[2] / "recorded" / "golden" / "check-1.json"


@pytest.fixture
def golden():
    return load_check(GOLDEN)


def linked(*pairs, nodes=4):
    """A check with bad links only."""
    size = np.zeros((nodes, nodes))
    found = [Finding(LINK, (f"n{i}", f"n{j}"), "bandwidth", 1.0, 2.0, "cable") for i, j in pairs]
    return Check(
        "mpich", "hosts", 1, 1, 0.1, 1.0, 1.0, 1, tuple(CheckedNode(f"n{k}") for k in range(nodes)),
        size, size, size, size, tuple(found),
    )  # fmt: skip


def test_of_bad_links_as_few_nodes_as_possible_are_left_out():
    assert linked().bad_hosts() == []
    assert linked((1, 2)).bad_hosts() == ["n1"]
    assert linked((1, 2), (3, 2), (2, 0)).bad_hosts() == ["n2"]
    assert linked((0, 1), (1, 0), (2, 3)).bad_hosts() == ["n0", "n2"]


def test_matrices_of_another_size_are_refused(golden):
    value = golden.to_json()
    value["send_s"] = value["send_s"][:2]
    with pytest.raises(InputError, match="send_s must hold a row and a column for each of `nodes`"):
        check_from_json(value)


@pytest.mark.parametrize("hosts", [[], ["node9"], ["node1", "node1"], ["node1", "node2", "node3"]])
def test_a_finding_about_unknown_nodes_is_refused(golden, hosts):
    value = golden.to_json()
    value["findings"][0]["hosts"] = hosts
    with pytest.raises(InputError, match="hosts of a finding"):
        check_from_json(value)


def test_junit_has_a_testcase_for_each_node_and_each_bad_link(golden):
    (suite,) = ElementTree.fromstring(check_junit_xml(golden).encode())
    assert (suite.get("tests"), suite.get("failures")) == ("5", "2")
    failing = {case.get("name") for case in suite if case.find("failure") is not None}
    assert failing == {"node1", "node1 to node2"}


def test_show_prints_the_verdict_in_every_format(golden, in_process):
    text = in_process("show", GOLDEN).stdout
    assert "The link from node1 to node2: bandwidth 12.1 MB/s" in text
    assert "1 of 4 nodes is to be left out: node1" in text
    rows = in_process("show", GOLDEN, "--format", "csv").stdout.splitlines()
    assert rows[0].startswith("sender,receiver,latency_s") and len(rows) == 13
    assert json.loads(in_process("show", GOLDEN, "--json").stdout) == golden.to_json()


def test_show_prints_the_testcases_of_a_check(golden, in_process, tmp_path, refused):
    shown = in_process("show", GOLDEN, "--format", "junit").stdout
    assert shown.strip() == check_junit_xml(golden).strip()
    (tmp_path / "ring.csv").write_text("src,dst,bytes\n0,1,1\n")
    refused(
        in_process("show", "ring.csv", "--format", "junit", check=False), "no testcases for --format junit"
    )


@pytest.mark.parametrize(
    ("format", "start"), [("json", "{"), ("csv", "nodes,rounds,"), ("table", "checking ")]
)
def test_the_plan_is_printed_in_every_format(in_process, any_mpi, format, start):
    asked = ("check", "--mpi", any_mpi, "--hosts", "a,b,c,d", "--plan", "--format", format)
    printed = in_process(*asked).stdout
    assert printed.startswith(start)
    if format == "json":
        plan = json.loads(printed)
        assert (plan["nodes"], plan["rounds"], plan["incasts"]) == (4, 3, 4)
        assert plan["longest_s"] == pytest.approx(2 * plan["first_launch_s"])
        assert plan["sentence"].startswith("checking 4 nodes: 3 rounds")


def test_undecided_suspicions_are_skipped_testcases(golden):
    moved = replace(golden, findings=(), undecided=golden.findings)
    (suite,) = ElementTree.fromstring(check_junit_xml(moved).encode())
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "0", "2")


def test_an_earlier_check_is_expected_by_its_file_folder_or_name(in_process, refused, tmp_path, any_mpi):
    asked = ("check", "--mpi", any_mpi, "--hosts", "a,b,c,d", "--plan")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "check.json").write_text(GOLDEN.read_text())
    size_text = json.loads(GOLDEN.read_text())["size_bytes"]
    for expected in (GOLDEN, "run"):
        plan = json.loads(in_process(*asked, "--json", "--expect", expected).stdout)
        assert plan["size_bytes"] == size_text
    refused(in_process(*asked, "--expect", "run", "--size", "8", check=False), "omit --size")
    refused(in_process(*asked, "--expect", "run", "--expect", GOLDEN, check=False), "names 2 checks")
    refused(in_process(*asked, "--expect", "nothing", check=False), "there is no baseline nothing")
    refused(in_process(*asked, "--expect", "speed=1", check=False), "--expect is 'speed=1'")
    (tmp_path / "empty").mkdir()
    refused(in_process(*asked, "--expect", "empty", check=False), "has no check.json")
    in_process("baseline", "save", "good", "run")
    assert json.loads(in_process(*asked, "--json", "--expect", "good").stdout)["size_bytes"] == size_text
    assert "good" in in_process("baseline", "list").stdout


def test_a_check_is_a_chapter_with_maps_of_all_links(golden):
    chapter = check_chapter(Material(checks=(golden,)))
    assert chapter.sentence == "1 of 4 nodes is to be left out: node1."
    bandwidth, latency = chapter.figures
    assert bandwidth.data[0]["z"][1][2] == pytest.approx(golden.size_bytes / golden.send_s[1, 2])
    assert bandwidth.data[0]["z"][0][0] is None
    (frame,) = bandwidth.layout["shapes"]
    assert (frame["x0"], frame["y0"]) == (1.5, 0.5)
    assert latency.layout["shapes"] == []
    assert [row[0] for row in chapter.tables[0].rows] == golden.hosts
    assert [one.what for one in contents(Material(checks=(golden,))).answers] == ["4 nodes, mpich 5.0.2"]


def test_a_check_without_findings_is_nothing_to_do(golden):
    value = golden.to_json() | {"findings": []}
    (answer,) = check_chapter(Material(checks=(check_from_json(value),))).answers
    assert answer.do == "nothing to do"
    assert check_chapter(Material()).sentence == ""


def test_two_groups_are_one_sentence_and_each_slow_node_a_testcase(in_process, tmp_path):
    slow = [Finding(NODE, (f"n{k}",), "sending bandwidth", 1e9, 2e9, "cable") for k in (0, 1, 3)]
    check = replace(linked(), findings=tuple(slow))
    (tmp_path / "check.json").write_text(json.dumps(check.to_json()))
    printed = in_process("show", "check.json").stdout
    sentence = "There are two groups of nodes by bandwidth: 1 GB/s at n0, n1 and n3; 2 GB/s at n2."
    assert sentence in printed and "n0: sending" not in printed
    assert "3 of 4 nodes are to be left out: n0, n1 and n3" in printed
    assert sentence in check_chapter(Material(checks=(check,))).sentence
    (suite,) = ElementTree.fromstring(check_junit_xml(check).encode())
    assert suite.get("failures") == "3"


def test_which_of_two_nodes_of_a_bad_link_is_left_out_is_said_to_be_open(in_process, tmp_path):
    (tmp_path / "check.json").write_text(json.dumps(linked((1, 2)).to_json()))
    printed = in_process("show", "check.json").stdout
    assert "For bad links n1 is left out; that could be n2 instead, because which of them" in printed


def test_links_that_were_not_judged_are_not_called_alike():
    check = replace(linked(), unjudged_links=2)
    assert verdict(check) == "all 4 nodes and 4 of 6 links are alike"
    assert check_chapter(Material(checks=(check,))).sentence == "All 4 nodes and 4 of 6 links are alike."
    assert check_from_json(check.to_json()).unjudged_links == 2


def test_two_nodes_are_not_called_alike():
    check = linked(nodes=2)
    assert verdict(check) == "2 nodes and 1 link were measured, not judged"
    chapter = check_chapter(Material(checks=(check,)))
    assert "not judged" in chapter.sentence and chapter.answers[0].do == "check at least 3 nodes"
    assert check.is_open(has_expected=False) and not check.is_open(has_expected=True)
    assert not linked().is_open(has_expected=False)


@pytest.mark.parametrize("bad", [("n0",), ("n0", "n1")])
def test_two_nodes_that_are_slower_than_expected_are_judged(bad):
    found = tuple(Finding(NODE, (host,), "bandwidth", 1e8, 1e9, "by --expect", "expected") for host in bad)
    check = replace(linked(nodes=2), findings=found)
    which = "all of 2 nodes are" if len(bad) == 2 else "1 of 2 nodes is"
    assert verdict(check).startswith(f"{which} to be left out: n0")
    chapter = check_chapter(Material(checks=(check,)))
    assert "not judged" not in chapter.sentence and "expected 1 GB/s" in chapter.answers[0].sentence


def test_it_is_on_the_page_and_in_the_terminal():
    material = collect([GOLDEN])
    assert "check-bandwidth-0" in render(material)
    text = render_terminal(material)
    assert "node1 to node2" in text and "mount it larger" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_page_has_the_table_of_the_command(golden, in_process):
    (table,) = check_chapter(Material(checks=(golden,))).tables
    printed = in_process("show", GOLDEN).stdout.splitlines()
    assert [row.split() for row in printed[: 1 + len(table.rows)]] == [
        " ".join(row).split() for row in (table.header, *table.rows)
    ]


def test_a_finding_about_a_node_keeps_the_case_of_its_name():
    finding = Finding(NODE, ("node1",), "clock drift", 3e-4, 0.0, "")
    assert finding.sentence == "node1: clock drift +300 us/s, others +0 us/s"


def test_a_report_of_a_check_says_what_was_measured(golden):
    text = render_terminal(Material(checks=(golden,)))
    assert "The nodes were checked in 2 launches." in " ".join(text.split())
    assert "No measurement" not in text


def test_an_unfinished_check_is_no_result(in_process, refused, tmp_path):
    run = Run.create(tmp_path / "run", machine={}, command=[], seed=0, earlybird="0", settings={})
    run.append_launch({"id": "check-0"})
    run.append_samples([Sample("check", "one_way", {"part": "pairs"}, "check-0", np.ones(3))])
    refused(in_process("show", "run", check=False), "did not complete")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--hosts", "a,b,a"), "names a 2 times"),
        (("--hosts", "missing.txt"), "missing.txt does not exist"),
        (("--hosts", "empty.txt"), "names no host"),
        (("--hosts", "a,b", "-o", "there"), "there exists already"),
    ],
)
def test_hosts_and_folders_that_cannot_be_used_are_refused(
    in_process, refused, tmp_path, any_mpi, more, says
):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "there").mkdir()
    refused(in_process("check", *more, "--plan", check=False), says)
