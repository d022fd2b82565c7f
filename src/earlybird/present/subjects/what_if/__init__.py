"""Presentation of what changed parameters and other numbers of nodes mean for an exchange."""
