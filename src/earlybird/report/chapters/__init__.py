"""Chapters of the report: a question each, answered by sentences, figures and tables."""
