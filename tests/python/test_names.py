"""One word for one thing in identifiers."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("src", "native", "tests", "bench", "tools")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".c", ".h", ".cpp", ".hpp") and path != Path(__file__)
]


def test_limits_are_named_by_max_and_min():
    """And not by MOST and LEAST as well."""
    other = re.compile(r"(?<!\w)_?(?:[A-Z0-9]+_)*(?<!AT_)(?:MOST|LEAST)(?:_[A-Z0-9]+)*(?!\w)")
    assert {name for path in SOURCES for name in other.findall(path.read_text(errors="replace"))} == set()
