"""A model as one HTML file that needs nothing else: what is collected of it, how it is grouped, and the page."""
