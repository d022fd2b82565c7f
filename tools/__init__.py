"""Checks that `make` runs: static analysis, fuzzing and coverage of the native sources."""
