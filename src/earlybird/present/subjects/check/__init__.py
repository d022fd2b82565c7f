"""What a person sees of check."""
