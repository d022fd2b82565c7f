"""Views of the inputs: what the chapters, figures and tables show, grouped by run, MPI and setting."""
