"""Fuzzing: targets of the native parsers, and a target for each format that the commands read."""
