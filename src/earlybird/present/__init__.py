"""Presentation of results by subject, on the page, in the terminal and as data."""
