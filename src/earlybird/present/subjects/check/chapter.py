"""The chapter on a check: which nodes and links are not as fast as the others."""

from earlybird.data import labels
from earlybird.data.check import MIN_JUDGED, NODE, Check, Division, Finding, Group
from earlybird.data.units import format_bandwidth, format_bytes, format_seconds
from earlybird.present.core.parts import Answer, Chapter
from earlybird.present.core.table import Table, table_of
from earlybird.present.core.text import NOTHING
from earlybird.present.material import Material
from earlybird.present.subjects.check.figures import bandwidth_map, latency_map

ID = "check"
QUESTION = "Is every node and link as fast as the others?"
MEANS = (
    "Every pair of nodes was measured in rounds of disjoint pairs, and each node against all others. A value "
    "is not as the others if it is worse than the median of comparable nodes by more than the minimum effect "
    "and by more than five standard deviations, and again in a second launch. If nodes are of two groups, "
    "the faster one is what others are compared with."
)


def check_chapter(material: Material) -> Chapter:
    """All checks in the order given."""
    checks = material.checks
    if not checks:
        return Chapter(ID, QUESTION, "")
    tables = [_nodes(one) for one in checks]
    return Chapter(
        ID,
        QUESTION,
        " ".join(map(_sentence, checks)),
        [MEANS, *(f"{labels.capital(note)}." for one in checks for note in one.notes)],
        answers=list(map(_answer, checks)),
        figures=[
            figure
            for k, one in enumerate(checks)
            for figure in (bandwidth_map(one, f"check-bandwidth-{k}"), latency_map(one, f"check-latency-{k}"))
        ],
        tables=tables,
        shown=[_findings(one) for one in checks if one.findings or one.undecided],
        brief=[_findings(one) for one in checks if one.findings or one.undecided],
    )


def _what(one: Check) -> str:
    return f"{labels.counted(len(one.nodes), 'node')}, {one.mpi}"


def _sentence(one: Check) -> str:
    number = len(one.nodes)
    links = one.links_text
    if not one.is_judged and not one.findings:
        return f"{number} nodes and {links} were measured, not judged."
    if not one.findings and one.undecided:
        return (
            f"{labels.counted(len(one.undecided), 'suspicion')} not decided, because cores were busy; "
            f"otherwise {one.alike_text} are alike."
        )
    if not one.findings:
        return f"{labels.capital(one.alike_text)} are alike."
    bad = one.bad_hosts()
    groups: list[Group | Division] = [*one.groups(), *one.divisions()]
    sentences = "".join(f" {labels.capital(group.sentence)}." for group in groups)
    return (
        f"Of {number} nodes and {links} {labels.counted(len(one.findings), 'finding')}; leave out "
        f"{labels.listed_briefly(bad)}.{sentences}"
    )


def _answer(one: Check) -> Answer:
    if not one.is_judged and not one.findings:
        return Answer(_what(one), "", "", _sentence(one), f"check at least {MIN_JUDGED} nodes")
    if not one.findings:
        do = "check again when the nodes are idle" if one.undecided else NOTHING
        return Answer(_what(one), "", "", _sentence(one), do)
    first, *others = one.findings
    more = f" ({labels.counted(len(others), 'more finding')})" if others else ""
    where = first.where if first.kind == NODE else labels.capital(first.where)
    compared = f"{first.against or 'others'} {first.expected_text}"
    finding = f"{where}: {first.measure} {first.value_text}, {compared}{more}."
    return Answer(_what(one), first.value_text, "", finding, first.cause)


def _findings(one: Check) -> Table:
    def row(name: str):
        return lambda finding: getattr(finding, name)

    columns = {
        "where": row("where"),
        "measure": row("measure"),
        "measured": row("value_text"),
        "others": row("expected_text"),
        "likely cause": row("cause"),
    }
    found: tuple[Finding, ...] = (*one.findings, *one.undecided)
    return table_of(f"Not as the others: {_what(one)}", found, columns, wide=True)


def _nodes(one: Check) -> Table:
    def rate(time_s: float) -> str:
        return format_bandwidth(one.bytes_of_cast / time_s) if time_s > 0 else "-"

    return table_of(
        f"All nodes: {_what(one)}",
        one.nodes,
        {
            "node": lambda node: node.host,
            "incast": lambda node: rate(node.incast_s),
            "outcast": lambda node: rate(node.outcast_s),
            "computation": lambda node: format_seconds(node.compute_s) if node.compute_s > 0 else "-",
            "clock": lambda node: f"{node.clock_offset_s * 1e3:+.3g} ms" if node.facts else "-",
            "cores": lambda node: str(node.facts.get("cores", "-")),
            "/dev/shm": lambda node: (
                format_bytes(node.facts["shm_bytes"]) if node.facts.get("shm_bytes") else "-"
            ),
        },
    )


def _shared_memory(num_bytes: float | None) -> str:
    return "-" if num_bytes is None else format_bytes(num_bytes)
