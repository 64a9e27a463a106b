"""Questions about a table or a clustering, answered as plain data and sentences."""
