"""The local machine: MPI flavours, cores, caches, permissions."""
