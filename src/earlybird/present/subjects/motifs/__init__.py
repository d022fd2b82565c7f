"""What a person sees of motifs."""
