"""Start ranks at their requested places, within a time limit, and end them cleanly."""
