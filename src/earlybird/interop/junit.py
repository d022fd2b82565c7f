"""Comparisons of runs, guidelines and checks of nodes as JUnit XML, which continuous integration services
display."""

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree

from earlybird.data.check import LINK, Check
from earlybird.data.guidelines import UNDECIDED, VIOLATED, GuidelineChecks
from earlybird.data.labels import mapped_by, signed_percent
from earlybird.data.plain_text import plain_line
from earlybird.data.points import point_texts
from earlybird.data.run_comparison import INCONCLUSIVE, SLOWER, Change, Point, RunComparison
from earlybird.data.schema import Estimate


def junit_xml(comparisons: Sequence[RunComparison], *, strict: bool = False) -> str:
    """Return a suite for each comparison. A slower point fails; an inconclusive point is skipped, or fails
    too if `strict`; a point that only the first side has is skipped."""
    return _document([_suite(comparison, strict) for comparison in comparisons])


def check_junit_xml(check: Check) -> str:
    """Return a testcase for each node and for each link that differs from the others; undecided ones are
    skipped."""
    suite = ElementTree.Element("testsuite", name="earlybird check")
    for host in check.hosts:
        case = ElementTree.SubElement(suite, "testcase", classname="node", name=host)
        of_node = [one for one in check.findings if one.hosts == (host,)]
        for one in of_node:
            ElementTree.SubElement(case, "failure", message=one.sentence, type=one.measure)
        undecided = [one.sentence for one in check.undecided if one.hosts == (host,)]
        if undecided and not of_node:
            ElementTree.SubElement(case, "skipped", message="; ".join(undecided))
    for one in check.findings:
        if one.kind == LINK:
            name = " to ".join(one.hosts)
            case = ElementTree.SubElement(suite, "testcase", classname="link", name=name)
            ElementTree.SubElement(case, "failure", message=one.sentence, type=one.measure)
    for one in check.undecided:
        if one.kind == LINK:
            name = " to ".join(one.hosts)
            case = ElementTree.SubElement(suite, "testcase", classname="link", name=name)
            ElementTree.SubElement(case, "skipped", message=one.sentence)
    _add_counts(suite)
    return _document([suite])


def failed_check_xml(sentence: str) -> str:
    """Return the report of a check that could not complete."""
    suite = ElementTree.Element(
        "testsuite", name="earlybird check", tests="1", failures="0", errors="1", skipped="0"
    )
    case = ElementTree.SubElement(suite, "testcase", classname="check", name="completes")
    ElementTree.SubElement(case, "error", message=sentence)
    return _document([suite])


def _document(suites: Iterable[ElementTree.Element]) -> str:
    root = ElementTree.Element("testsuites")
    root.extend(suites)
    for element in root.iter():  # XML has no control characters, not even as references
        element.attrib.update({name: plain_line(text) for name, text in element.attrib.items()})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True).decode()


def guidelines_xml(found: GuidelineChecks, *, strict: bool = False) -> str:
    """Return a suite with a testcase for each check. A violated guideline fails; an inconclusive guideline is
    skipped, or fails too if `strict`."""
    suite = ElementTree.Element("testsuite", name=f"guidelines of {found.mpi} in {found.run}")
    for one in found.checks:
        where = f"{one.text()}, {one.ranks} ranks, {one.layout}"
        name = ", ".join(filter(None, (where, mapped_by(one.map_by))))
        case = ElementTree.SubElement(suite, "testcase", classname=one.kind, name=name)
        case.set("time", f"{one.time_s:.9g}")
        message = _message(one.outcome, one.ratio) + f"; {one.remedy}" * bool(one.remedy)
        if one.outcome == VIOLATED or (strict and one.outcome == UNDECIDED):
            ElementTree.SubElement(case, "failure", message=message, type=one.outcome)
        elif one.outcome == UNDECIDED:
            ElementTree.SubElement(case, "skipped", message=message)
    _add_counts(suite)
    return _document([suite])


def _add_counts(suite: ElementTree.Element) -> None:
    cases = suite.findall("testcase")
    failures = sum(case.find("failure") is not None for case in cases)
    counts = {"failures": failures, "skipped": len(suite.findall("*/skipped"))}
    for name, count in ({"tests": len(cases), "errors": 0} | counts).items():
        suite.set(name, str(count))


def _suite(comparison: RunComparison, strict: bool) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=f"{comparison.before} against {comparison.after}")
    points: tuple[Change | Point, ...] = (*comparison.changes, *comparison.only_before)
    for one, name in zip(points, point_texts(points), strict=True):
        case = ElementTree.SubElement(suite, "testcase", classname=one.kernel, name=name)
        if isinstance(one, Change):
            case.set("time", f"{one.after_s:.9g}")
            _add_outcome(case, one, strict)
        else:
            ElementTree.SubElement(case, "skipped", message=f"not measured in {comparison.after}")
    _add_counts(suite)
    return suite


def _add_outcome(case: ElementTree.Element, change: Change, strict: bool) -> None:
    if change.verdict == SLOWER or (strict and change.verdict == INCONCLUSIVE):
        ElementTree.SubElement(
            case, "failure", message=_message(change.verdict, change.ratio), type=change.verdict
        )
    elif change.verdict == INCONCLUSIVE:
        ElementTree.SubElement(case, "skipped", message=_message(change.verdict, change.ratio))


def _message(verdict: str, ratio: Estimate) -> str:
    low, value, high = (signed_percent(end - 1) for end in (ratio.low, ratio.value, ratio.high))
    return f"{verdict}: {value} ({low} .. {high})"
