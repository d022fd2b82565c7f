"""Start ranks where they were asked to sit, within a time limit, and end them cleanly."""
