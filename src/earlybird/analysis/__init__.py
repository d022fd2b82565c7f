"""Analyses recordings: which rank sends to which, the time in calls, waiting, and missing parts."""
