"""Tables, plots and the page: shows results that other packages compute."""
