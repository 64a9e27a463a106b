"""What each column of a table is to a clustering."""
