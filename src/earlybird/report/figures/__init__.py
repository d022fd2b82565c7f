"""Figures of the report as plain data for plotly."""
