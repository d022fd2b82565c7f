"""Install a flavour, build native/ for it, keep the result."""
