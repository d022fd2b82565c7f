"""Runs commands in this process: these tests check output and errors, not the end of a process."""

import pytest


@pytest.fixture
def earlybird(in_process):
    return in_process
