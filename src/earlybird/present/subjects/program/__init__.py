"""Presentation of a projection: what changes of a recorded program would gain."""
