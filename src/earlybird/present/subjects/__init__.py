"""A package for each kind of result: its rows, tables, sentences and figures."""
