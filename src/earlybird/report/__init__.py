"""Tables, plots and the page: draws what other rooms computed."""
