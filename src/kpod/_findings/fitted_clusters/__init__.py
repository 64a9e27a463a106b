"""A fitted model seen together with a table."""
