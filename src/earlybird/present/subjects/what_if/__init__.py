"""What a person sees of what if."""
