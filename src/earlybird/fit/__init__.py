"""Fit samples to a profile."""
