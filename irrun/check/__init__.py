"""What is wrong with a model, and how that is told."""
