"""`reproduce PAPER --published` prints every number of the papers, as an independent list has them."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest

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
