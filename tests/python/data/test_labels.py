"""Texts of sentences: percentages, capital letters, and mappings."""

import pytest

from earlybird.data import labels
from earlybird.present.core.notation import percent_text


@pytest.mark.parametrize("text", [labels.percent, labels.signed_percent, percent_text])
@pytest.mark.parametrize("fraction", [-0.0, -1e-9, -0.0004, 0.0, 0.0004])
def test_zero_has_no_sign(text, fraction):
    assert text(fraction) == "0.0 %"


def test_other_percentages_keep_their_sign():
    assert [labels.percent(-0.02), labels.signed_percent(0.02)] == ["-2.0 %", "+2.0 %"]


@pytest.mark.parametrize(
    ("sentence", "capital"),
    [
        ("libearlybird leaves the application 10 %", "libearlybird leaves the application 10 %"),
        ("libearlybird, 4 messages", "libearlybird, 4 messages"),
        ("mvapich-2.3 on node7", "mvapich-2.3 on node7"),
        ("neighbor_alltoallv, ring", "neighbor_alltoallv, ring"),
        ("library calls", "Library calls"),
        ("", ""),
    ],
)
def test_a_sentence_that_begins_with_a_name_in_small_letters_keeps_it(sentence, capital):
    assert labels.capital(sentence) == capital


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        ("node", "mapped by node"),
        ("unknown", ""),
        ("", ""),
        ("unknown, procsync window", "procsync window"),
    ],
)
def test_an_unknown_mapping_is_not_named(mapping, text):
    assert labels.mapped_by(mapping) == text
