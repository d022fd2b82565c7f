"""Computes what a recorded program would gain from changes: projection and advice."""
