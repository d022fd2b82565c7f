"""What a person sees of advice."""
