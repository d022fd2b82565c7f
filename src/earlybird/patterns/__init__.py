"""Meshes, halos, random exchanges and partitions, as Patterns."""
