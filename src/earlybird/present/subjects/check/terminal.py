"""Prints a check: the values of every node, what is not as the others, and the verdict."""

from typing import Any

import numpy as np

from earlybird.data.check import Check, CheckedNode, Division, Group
from earlybird.data.labels import capital, counted, listed_briefly
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.interop.junit import check_junit_xml, failed_check_xml
from earlybird.present.core.table import Column, Table
from earlybird.present.render.data import print_csv, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table, print_text


def print_check(check: Check, format: str) -> None:
    """In one of the formats of `earlybird check`."""
    if format == "json":
        print_json(check.to_json())
    elif format == "csv":
        print_csv(_rows(check))
    elif format == "junit":
        print_text(check_junit_xml(check))
    else:
        _print_table(check)
    for text in check.notes:
        note(f"note: {text}")


def print_failure(sentence: str, format: str) -> None:
    """Of a check that could not complete, for what reads its output as JSON or JUnit."""
    if format == "json":
        print_json({"error": sentence})
    elif format == "junit":
        print_text(failed_check_xml(sentence))


def verdict(check: Check) -> str:
    """`all 4 nodes and 6 links are alike`; `2 of 4 nodes are to be left out: node1 and node3`."""
    number, undecided = len(check.nodes), _undecided(check)
    if not check.is_judged and not check.findings:
        return f"{number} nodes and {check.links_text} were measured, not judged"
    if not check.findings:
        alike = f"{check.alike_text} are alike"
        return f"{undecided}; otherwise {alike}" if undecided else alike
    more = f"; {undecided}" if undecided else ""
    bad = check.bad_hosts()
    what = "is" if len(bad) == 1 else "are"
    whole = "all" if len(bad) == number else len(bad)
    return f"{whole} of {number} nodes {what} to be left out: {listed_briefly(bad, 8)}{more}"


def is_open(check: Check, has_expected: bool) -> bool:
    """Whether a check without findings says nothing of its nodes: they were too busy, or too few to compare
    them with each other and with nothing else."""
    return bool(check.undecided) or not (check.is_judged or has_expected)


def _undecided(check: Check) -> str:
    """`2 suspicions are undecided because cores were busy`; "" without any."""
    number = len(check.undecided)
    if not number:
        return ""
    return (
        f"{counted(number, 'suspicion')} {'is' if number == 1 else 'are'} undecided because cores were busy"
    )


def explanations(check: Check) -> list[str]:
    """Return sentences without full stops: groups of nodes, other findings, what was not decided, and
    which nodes may be left out instead of others."""
    groups: list[Group | Division] = [*check.groups(), *check.divisions()]
    in_groups = {id(one) for group in groups for one in check.findings if group.contains(one)}
    sentences = [group.sentence for group in groups]
    sentences += [one.sentence for one in check.findings if id(one) not in in_groups]
    sentences += [one.sentence for one in check.undecided]
    return sentences + [_choices(first, others) for first, *others in check.ties()]


def _choices(chosen: list[str], others: list[list[str]]) -> str:
    """Return which nodes are left out for bad links, and by which others these may be replaced."""
    common = set(chosen).intersection(*others)
    own = [host for host in chosen if host not in common]
    replacements = []
    for hosts in others:
        kept = set(hosts)
        gone = [host for host in own if host not in kept]
        place = " instead" if gone == own else f" in the place of {listed_briefly(gone, 8)}"
        replacements.append(listed_briefly([host for host in hosts if host not in chosen], 8) + place)
    # Long lists that are cut may have the same text.
    named = list(dict.fromkeys(replacements))[:2]
    more = len(others) - len(named)
    several = [f"{counted(more, 'other choice')}"] if more else []
    return (
        f"for bad links {listed_briefly(own, 8)} {'is' if len(own) == 1 else 'are'} left out; that could be "
        f"{' or '.join(named + several)}, because which of them is at fault is not known"
    )


def _print_table(check: Check) -> None:
    print_table(Table("", _columns(check), check.nodes))
    print_line()
    hosts = set(check.hosts)
    for sentence in explanations(check):
        # The name of a host keeps its case.
        print_line(f"{sentence if sentence.partition(':')[0] in hosts else capital(sentence)}.")
    again = ", suspicions measured twice" if check.launches > 1 else ""
    print_line(f"{capital(verdict(check))} ({check.mpi}, {format_seconds(round(check.spent_s, 1))}{again}).")


def _columns(check: Check) -> list[Column]:
    bandwidth = check.bandwidth_bytes_per_s()
    cast_bytes = check.bytes_of_cast
    latency_s = np.where(check.latency_s > 0, check.latency_s, np.nan)
    order = {node.host: k for k, node in enumerate(check.nodes)}
    bad = set(check.bad_hosts())

    def median(values: np.ndarray) -> float:
        return float(np.nanmedian(values)) if not np.isnan(values).all() else 0.0

    def rate(time_s: float) -> str:
        return format_bandwidth(cast_bytes / time_s) if time_s > 0 else ""

    return [
        Column("node", lambda node: node.host, left=True),
        Column("latency", lambda node: _seconds(median(latency_s[order[node.host]]))),
        Column("sends", lambda node: _rate(median(bandwidth[order[node.host]]))),
        Column("receives", lambda node: _rate(median(bandwidth[:, order[node.host]]))),
        Column("incast", lambda node: rate(node.incast_s), optional=True),
        Column("outcast", lambda node: rate(node.outcast_s), optional=True),
        Column("computation", lambda node: _seconds(node.compute_s), optional=True),
        Column("clock", _clock, optional=True),
        Column("cores", lambda node: node.facts.get("cores", ""), optional=True),
        Column("/dev/shm", _shm, optional=True),
        Column("state", lambda node: "bad" if node.host in bad else "ok", left=True),
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
