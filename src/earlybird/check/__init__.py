"""Checks that every node and link of a job is as fast as the others: the plan, and the verdicts."""
