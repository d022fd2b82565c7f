"""Presentation of motifs."""
