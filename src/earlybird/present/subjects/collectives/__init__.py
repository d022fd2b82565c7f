"""Presentation of collectives."""
