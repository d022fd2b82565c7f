"""Prints a check: the values of every node, what is not as the others, and the verdict."""

from collections.abc import Iterator
from typing import Any

from earlybird.data.check import Check
from earlybird.data.labels import capital
from earlybird.data.units import format_seconds
from earlybird.interop.junit import check_junit_xml, failed_check_xml
from earlybird.present.render.data import print_data, print_json
from earlybird.present.render.notes import note
from earlybird.present.render.terminal import print_line, print_table, print_text
from earlybird.present.subjects.check.answer import explanations, verdict
from earlybird.present.subjects.check.tables import nodes_table

_LINK_VALUES = ("latency_s", "send_s", "both_s", "lost_share")


def print_check(check: Check, format: str) -> None:
    """Print a check in one of the formats of `earlybird check`."""
    if format == "junit":
        print_text(check_junit_xml(check))
    elif not print_data(format, check.to_json(), _link_rows(check), ("sender", "receiver", *_LINK_VALUES)):
        _print_table(check)
    for text in check.notes:
        note(f"note: {text}")


def print_failure(sentence: str, format: str) -> None:
    """Print why a check could not complete, in the formats that programs read."""
    if format == "json":
        print_json({"error": sentence})
    elif format == "junit":
        print_text(failed_check_xml(sentence))


def _print_table(check: Check) -> None:
    print_table(nodes_table(check))
    print_line()
    hosts = set(check.hosts)
    for sentence in explanations(check):
        # The name of a host keeps its case.
        print_line(f"{sentence if sentence.partition(':')[0] in hosts else capital(sentence)}.")
    again = ", suspicions measured twice" if check.launches > 1 else ""
    print_line(f"{capital(verdict(check))} ({check.mpi}, {format_seconds(round(check.spent_s, 1))}{again}).")


def _link_rows(check: Check) -> Iterator[dict[str, Any]]:
    hosts = list(enumerate(check.hosts))
    for i, sender in hosts:
        for j, receiver in hosts:
            if i != j:
                values = {name: float(getattr(check, name)[i, j]) for name in _LINK_VALUES}
                yield {"sender": sender, "receiver": receiver} | values
