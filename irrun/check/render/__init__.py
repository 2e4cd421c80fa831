"""How reports are written: a module for each format, and the table of them."""
