"""Tables and models in files: reading, writing, and what is wrong with one in one line."""
