"""What a person sees of partitioned."""
