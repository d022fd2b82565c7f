"""Candidates, predicted, ranked and explained."""
