"""One file per command; each defines `command`, which the parser imports when it is called."""
