"""Files of other tools: read into patterns, and written from recordings and patterns."""
