"""Simulates recorded programs, as they were and with changes, and advises on them."""
