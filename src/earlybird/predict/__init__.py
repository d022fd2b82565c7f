"""A pattern, a profile and a layout to seconds per rank."""
