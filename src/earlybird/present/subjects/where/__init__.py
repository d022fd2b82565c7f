"""Who waits for whom in a program that runs."""
