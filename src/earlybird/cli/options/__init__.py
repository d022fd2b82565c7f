"""Makes commands of functions, and declares the options that several commands share."""
