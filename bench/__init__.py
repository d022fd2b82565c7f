"""Comparisons with other benchmarks: minutes long, never part of the tests."""
