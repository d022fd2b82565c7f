"""Prints a check: the values of every node, what is not as the others, and the verdict."""

from typing import Any
from xml.etree import ElementTree

import numpy as np

from earlybird.cli.output.notes import note
from earlybird.cli.output.printing import Column, print_csv, print_json, print_table, table
from earlybird.data.check import NODE, Check, CheckedNode, Finding
from earlybird.data.labels import capital, listed_briefly
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.interop.junit import check_junit_xml


def print_check(check: Check, format: str) -> None:
    """In one of the formats of `earlybird check`."""
    if format == "json":
        print_json(check.to_json())
    elif format == "csv":
        print_csv(_rows(check))
    elif format == "junit":
        print(check_junit_xml(check))
    else:
        _print_table(check)
    for text in check.notes:
        note(f"note: {text}")


def print_failure(sentence: str, format: str) -> None:
    """Of a check that could not complete, for what reads its output as JSON or JUnit."""
    if format == "json":
        print_json({"error": sentence})
    elif format == "junit":
        root = ElementTree.Element("testsuites")
        suite = ElementTree.SubElement(
            root, "testsuite", name="earlybird check", tests="1", failures="0", errors="1", skipped="0"
        )
        case = ElementTree.SubElement(suite, "testcase", classname="check", name="completes")
        ElementTree.SubElement(case, "error", message=sentence)
        ElementTree.indent(root)
        print(ElementTree.tostring(root, encoding="unicode", xml_declaration=True))


def verdict(check: Check) -> str:
    """`all 4 nodes and 6 links are alike`; `2 of 4 nodes are to be left out: node1 and node3`."""
    number = len(check.nodes)
    if not check.is_judged:
        return f"{number} nodes and {check.links_text} were measured, not judged"
    if not check.findings:
        return f"{check.alike_text} are alike"
    bad = check.bad_hosts()
    what = "is" if len(bad) == 1 else "are"
    return f"{len(bad)} of {number} nodes {what} to be left out: {listed_briefly(bad, 8)}"


def _print_table(check: Check) -> None:
    header, rows = table(_columns(check), check.nodes)
    print_table(header, rows, left=["node", "state"])
    print()
    for finding in check.findings:
        print(f"{_sentence(finding)}.")
    again = ", suspicions measured twice" if check.launches > 1 else ""
    print(f"{capital(verdict(check))} ({check.mpi}, {format_seconds(round(check.spent_s, 1))}{again}).")


def _sentence(finding: Finding) -> str:
    # The name of a host keeps its case.
    return finding.sentence if finding.kind == NODE else capital(finding.sentence)


def _columns(check: Check) -> list[Column]:
    bandwidth = check.bandwidth_bytes_per_s()
    cast_bytes = check.cast_bytes * (len(check.nodes) - 1)
    latency_s = np.where(check.latency_s > 0, check.latency_s, np.nan)
    order = {node.host: k for k, node in enumerate(check.nodes)}
    bad = set(check.bad_hosts())

    def median(values: np.ndarray) -> float:
        return float(np.nanmedian(values)) if not np.isnan(values).all() else 0.0

    def rate(time_s: float) -> str:
        return format_bandwidth(cast_bytes / time_s) if time_s > 0 else ""

    return [
        Column("node", lambda node: node.host),
        Column("latency", lambda node: _seconds(median(latency_s[order[node.host]]))),
        Column("sends", lambda node: _rate(median(bandwidth[order[node.host]]))),
        Column("receives", lambda node: _rate(median(bandwidth[:, order[node.host]]))),
        Column("incast", lambda node: rate(node.incast_s), optional=True),
        Column("outcast", lambda node: rate(node.outcast_s), optional=True),
        Column("computation", lambda node: _seconds(node.compute_s), optional=True),
        Column("clock", _clock, optional=True),
        Column("cores", lambda node: node.facts.get("cores", ""), optional=True),
        Column("/dev/shm", _shm, optional=True),
        Column("state", lambda node: "bad" if node.host in bad else "ok"),
    ]


def _seconds(time_s: float) -> str:
    return format_seconds(time_s) if time_s > 0 else ""


def _rate(bandwidth_bytes_per_s: float) -> str:
    return format_bandwidth(bandwidth_bytes_per_s) if bandwidth_bytes_per_s > 0 else ""


def _clock(node: CheckedNode) -> str:
    if not node.facts:
        return ""
    sign = "-" if node.clock_offset_s < 0 else "+"
    return f"{sign}{format_seconds(abs(node.clock_offset_s))}" if node.clock_offset_s else "0 s"


def _shm(node: CheckedNode) -> str:
    return format_bytes(node.facts["shm_bytes"]) if "shm_bytes" in node.facts else ""


def _rows(check: Check) -> list[dict[str, Any]]:
    """A row for each link."""
    hosts = check.hosts
    return [
        {
            "sender": hosts[i], "receiver": hosts[j], "latency_s": float(check.latency_s[i, j]),
            "send_s": float(check.send_s[i, j]), "both_s": float(check.both_s[i, j]),
            "lost_share": float(check.lost_share[i, j]),
        }
        for i in range(len(hosts)) for j in range(len(hosts)) if i != j
    ]  # fmt: skip
