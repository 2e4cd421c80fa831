"""Models for the viewers that other people make: what is known of each layer, in the forms that these read."""
