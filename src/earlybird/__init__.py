"""Measure, model, predict and replay MPI communication."""

__version__ = "0.1.0"
