"""What a person sees of provenance."""
