"""The data types (Run, Profile, Pattern, Layout, Prediction, Comparison) and the only parser of their
files."""
