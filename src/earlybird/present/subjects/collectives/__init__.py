"""What a person sees of collectives."""
