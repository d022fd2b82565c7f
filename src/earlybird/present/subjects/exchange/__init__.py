"""What a person sees of exchange."""
