"""Suites: which kernels at which points, in which order, until when."""
