"""What a person sees of program."""
