"""What a person sees of papers."""
