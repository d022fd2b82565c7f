"""Commands are run in this process: what they print and refuse is asked here, not how a process ends."""

import pytest


@pytest.fixture
def earlybird(in_process):
    return in_process
