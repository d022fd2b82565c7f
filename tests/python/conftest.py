"""Settings and fixtures of every Python test; hypothesis has no time limits, for machines may be busy."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from earlybird.toolchain.build import PKG_CONFIG

settings.register_profile(
    "earlybird", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("earlybird")


@pytest.fixture
def describe_build():
    """Write the description that a build of libearlybird for an MPI has, from its template."""
    template = Path(__file__).parents[2] / "native/cmake/earlybird.pc.in"

    def describe(build: Path, name: str) -> None:
        (build / PKG_CONFIG).parent.mkdir(parents=True)
        (build / PKG_CONFIG).write_text(template.read_text().replace("@EARLYBIRD_MPI@", f"{name} 4.0.2"))

    return describe
