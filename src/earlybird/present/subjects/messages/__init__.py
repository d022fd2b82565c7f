"""What a person sees of messages."""
