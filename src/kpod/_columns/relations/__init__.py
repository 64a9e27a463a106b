"""Relations between the columns of a table."""
