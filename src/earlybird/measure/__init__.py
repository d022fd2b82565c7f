"""Suites of measurements: the kernels, their points, their order, and when they stop."""
