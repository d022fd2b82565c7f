"""Tables of a check: the values of every node, and what is not as the others."""

import numpy as np

from earlybird.data.check import CLOCK, Check, CheckedNode, measure_text
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.present.core.table import Column, Table
from earlybird.present.subjects.check.answer import title


def nodes_table(check: Check) -> Table:
    """Return a row for each node; latency and bandwidth are medians over its links."""
    bandwidth = check.bandwidth_bytes_per_s()
    latency_s = np.where(check.latency_s > 0, check.latency_s, np.nan)
    place = {node.host: k for k, node in enumerate(check.nodes)}
    bad = set(check.bad_hosts())
    good = "ok" if check.is_judged or check.findings else "not judged"

    def cast(time_s: float) -> str:
        return format_bandwidth(check.bytes_of_cast / time_s) if time_s > 0 else ""

    columns = [
        Column("node", lambda node: node.host, left=True),
        Column("latency", lambda node: _seconds(_median(latency_s[place[node.host]]))),
        Column("sends", lambda node: _rate(_median(bandwidth[place[node.host]]))),
        Column("receives", lambda node: _rate(_median(bandwidth[:, place[node.host]]))),
        Column("incast", lambda node: cast(node.incast_s), optional=True),
        Column("outcast", lambda node: cast(node.outcast_s), optional=True),
        Column("computation", lambda node: _seconds(node.compute_s), optional=True),
        Column("clock", _clock, optional=True),
        Column("cores", lambda node: node.facts.get("cores", ""), optional=True),
        Column("/dev/shm", _shared_memory, optional=True),
        Column("state", lambda node: "bad" if node.host in bad else good, left=True),
    ]
    return Table(f"All nodes: {title(check)}", columns, check.nodes)


def findings_table(check: Check) -> Table:
    """Return a row for each finding, and for each that was not decided."""
    columns = [
        Column("where", lambda finding: finding.where, left=True),
        Column("measure", lambda finding: finding.measure, left=True),
        Column("measured", lambda finding: finding.value_text),
        Column("others", lambda finding: finding.expected_text),
        Column("likely cause", lambda finding: finding.cause, left=True, folded=True),
    ]
    findings = (*check.findings, *check.undecided)
    return Table(f"Not as the others: {title(check)}", columns, findings, wide=True)


def _median(values: np.ndarray) -> float:
    return float(np.nanmedian(values)) if not np.isnan(values).all() else 0.0


def _seconds(time_s: float) -> str:
    return format_seconds(time_s) if time_s > 0 else ""


def _rate(bandwidth_bytes_per_s: float) -> str:
    return format_bandwidth(bandwidth_bytes_per_s) if bandwidth_bytes_per_s > 0 else ""


def _clock(node: CheckedNode) -> str:
    if not node.facts:
        return ""
    return measure_text(CLOCK, node.clock_offset_s) if node.clock_offset_s else "0 s"


def _shared_memory(node: CheckedNode) -> str:
    return format_bytes(node.facts["shm_bytes"]) if "shm_bytes" in node.facts else ""
