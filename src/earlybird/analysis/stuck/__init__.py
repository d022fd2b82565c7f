"""Who waits for whom in a program that runs or hangs, from the states of its ranks."""
