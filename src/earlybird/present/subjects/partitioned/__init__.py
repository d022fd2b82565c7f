"""Presentation of partitioned communication."""
