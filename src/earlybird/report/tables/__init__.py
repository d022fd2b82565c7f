"""Tables of the report: text cells with the numbers of the figures."""
