"""A cluster on one machine: nodes of Linux namespaces, joined by a network of limited rate."""
