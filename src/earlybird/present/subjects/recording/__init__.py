"""What a person sees of recording."""
