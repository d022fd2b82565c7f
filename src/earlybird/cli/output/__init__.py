"""Prints tables, JSON, CSV and progress."""
