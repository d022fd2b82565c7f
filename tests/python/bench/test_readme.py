"""bench/README.md lists every comparison."""

import re
from pathlib import Path

from bench.__main__ import COMPARISONS

PAGE = Path(__file__).parents[3] / "bench" / "README.md"


def test_every_comparison_is_listed_once_in_order():
    cells = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    assert [name for cell in cells for name in re.findall(r"`(.*?)`", cell)] == list(COMPARISONS)
