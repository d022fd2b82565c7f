"""Presentation of changes between runs."""
