"""Runs the command line: `python -m earlybird`."""

from earlybird.cli.main import run

run()
