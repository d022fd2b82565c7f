"""What a person sees of measured."""
