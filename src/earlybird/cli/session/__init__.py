"""Selects MPI and launcher, and measures, for the commands that start ranks."""
