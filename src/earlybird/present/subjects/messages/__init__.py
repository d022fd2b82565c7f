"""Presentation of messages."""
