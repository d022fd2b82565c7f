"""How often every point is launched by default; imports nothing, for commands that start other programs."""

# Without and with --quick.
DEFAULT_LAUNCHES, QUICK_LAUNCHES = 5, 3
