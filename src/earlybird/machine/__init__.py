"""What is here: MPI flavours, cores, caches, permissions."""
