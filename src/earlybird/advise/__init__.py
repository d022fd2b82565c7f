"""Predict, rank and explain candidates."""
