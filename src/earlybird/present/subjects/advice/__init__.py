"""Presentation of advice."""
