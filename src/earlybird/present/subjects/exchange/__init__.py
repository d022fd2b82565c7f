"""Presentation of exchanges: patterns with their measured and predicted times."""
