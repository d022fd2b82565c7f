"""`reproduce PAPER --published` prints every number of the papers, as an independent list has them."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

from earlybird.papers.page import summary, with_footnotes
from earlybird.papers.paper import Row
from earlybird.papers.registry import PAPERS
from earlybird.present.material import Material

PRINTED = list(csv.DictReader((Path(__file__).parent / "printed.csv").open()))


@pytest.mark.parametrize("name", PAPERS)
def test_every_printed_number_is_there_and_no_other(name):
    rows = PAPERS[name].rows(Material())
    numbers = Counter((row.figure, row.paper) for row in rows if re.search(r"\d", row.paper))
    assert numbers == Counter((one["where"], one["value"]) for one in PRINTED if one["paper"] == name)


@pytest.mark.parametrize("name", PAPERS)
def test_what_is_not_measured_says_so(name):
    rows = PAPERS[name].rows(Material())
    assert rows and all(row.here or row.note for row in rows)


def test_examples_of_gillis_follow_from_the_equations_here():
    for row in PAPERS["gillis"].rows(Material()):
        if row.here:
            # Printed figures are truncated.
            assert float(row.here) == pytest.approx(float(row.paper), rel=1e-3), row


def test_what_three_notes_share_stands_once_below_the_table():
    long = "more threads than cores (2 cores here)"
    notes = [f"agrees; {long}", f"{long}; agrees", long, "agrees", ""]
    rows, footnotes = with_footnotes([Row("figure 4", "ratio", "3.18", "1", note) for note in notes])
    # What is short is better read where it belongs.
    assert [row.note for row in rows] == ["agrees [1]", "agrees [1]", "[1]", "agrees", ""]
    assert footnotes == [f"[1] {long}"]


def test_the_summary_counts_values_and_verdicts():
    notes = {"a": "libearlybird; agrees", "b": "differs; 2 cores", "c": "unclear"}
    rows = [Row("figure 4", quantity, "1", "1", note) for quantity, note in notes.items()]
    rows += [Row("figure 4", "a", "1", "1", "agrees"), Row("figure 5", "a", "2", note="not measured")]
    assert summary(rows) == (
        "Of 4 printed values of the paper, 3 were repeated here. "
        "Of 4 comparisons, 2 agree, 1 differs and 1 is unclear."
    )
    assert summary([Row("figure 4", "a", "1", "1", "")]).endswith("1 were repeated here.")
