"""Samples to a profile."""
