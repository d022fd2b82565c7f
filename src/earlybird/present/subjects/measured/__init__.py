"""Presentation of measured results."""
