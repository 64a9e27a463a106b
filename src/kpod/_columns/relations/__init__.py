"""What columns of a table say about one another."""
