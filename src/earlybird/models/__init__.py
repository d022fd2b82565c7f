"""Pure formulas and statistics on numpy arrays; every equation cites its paper."""
