"""Presentation of how measurements were made: machine, MPI, placement and the state of samples."""
