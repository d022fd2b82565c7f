"""Presentation of a recording: what a program sends, calls and waits for."""
