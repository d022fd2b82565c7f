"""Presentation of simulated programs: what determines the run time, and what changes would gain."""
