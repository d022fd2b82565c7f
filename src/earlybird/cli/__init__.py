"""One file per command: read arguments, call, print."""
