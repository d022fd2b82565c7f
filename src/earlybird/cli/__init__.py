"""Reads arguments, calls the other packages, and prints; `commands/` has one file per command."""
