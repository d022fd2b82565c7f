"""The levels at which two ranks exchange messages, and the orders in which launchers fill nodes."""

LEVELS = ("intra_socket", "inter_socket", "inter_node")
# How tables and texts name them.
LEVEL_LABELS = dict(zip(LEVELS, ("same socket", "across sockets", "between nodes"), strict=True))
MAPPINGS = ("core", "socket", "node")
UNKNOWN_MAPPING = "unknown"  # of collectives that another benchmark measured
