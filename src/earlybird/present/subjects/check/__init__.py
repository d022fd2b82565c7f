"""Presentation of a check of nodes and links."""
