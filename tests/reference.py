"""Published data outside the repository: tests read them from `shared/data` next to the clone."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "data"


def reference(name: str) -> Path:
    """Where the reference data `name` are, or would be."""
    return FOLDER / name


def needs_reference(name: str) -> pytest.MarkDecorator:
    """A mark that skips the test where the reference data `name` are missing."""
    missing = not reference(name).exists()
    return pytest.mark.skipif(missing, reason=f"reference data not found: ../shared/data/{name}")
