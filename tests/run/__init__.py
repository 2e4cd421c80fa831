"""Programs, and everything that runs them."""
