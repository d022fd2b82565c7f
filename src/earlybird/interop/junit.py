"""A comparison of runs as JUnit XML, which continuous integration services display: a testcase per point."""

from collections.abc import Sequence
from xml.etree import ElementTree

from earlybird.data.labels import signed_percent
from earlybird.data.points import point_texts
from earlybird.data.run_comparison import INCONCLUSIVE, SLOWER, Change, Point, RunComparison


def junit_xml(comparisons: Sequence[RunComparison], *, strict: bool = False) -> str:
    """A suite for each comparison. A slower point fails; an inconclusive one is skipped, or fails too if
    `strict`; a point that only the first side has is skipped."""
    root = ElementTree.Element("testsuites")
    for comparison in comparisons:
        root.append(_suite(comparison, strict))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


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
    counts = {"failures": len(suite.findall("*/failure")), "skipped": len(suite.findall("*/skipped"))}
    for name, count in ({"tests": len(points), "errors": 0} | counts).items():
        suite.set(name, str(count))
    return suite


def _add_outcome(case: ElementTree.Element, change: Change, strict: bool) -> None:
    if change.verdict == SLOWER or (strict and change.verdict == INCONCLUSIVE):
        ElementTree.SubElement(case, "failure", message=_message(change), type=change.verdict)
    elif change.verdict == INCONCLUSIVE:
        ElementTree.SubElement(case, "skipped", message=_message(change))


def _message(change: Change) -> str:
    low, value, high = (
        signed_percent(end - 1) for end in (change.ratio.low, change.ratio.value, change.ratio.high)
    )
    return f"{change.verdict}: {value} ({low} .. {high})"
