"""What a person sees of guidelines."""
