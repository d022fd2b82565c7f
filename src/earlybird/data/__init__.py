"""The nouns (Run, Profile, Pattern, Layout, Prediction, Comparison), their files and their units; the only parser of each."""
