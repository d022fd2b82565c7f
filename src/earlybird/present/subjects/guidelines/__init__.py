"""Presentation of guidelines of collectives."""
