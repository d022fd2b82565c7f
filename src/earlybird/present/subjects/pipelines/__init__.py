"""What a person sees of pipelines."""
