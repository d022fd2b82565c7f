"""Presentation of pipelines."""
