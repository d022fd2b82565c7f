"""Renders tables, pages, CSV and JSON."""
