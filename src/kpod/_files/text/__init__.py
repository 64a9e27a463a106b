"""Text files: delimited, separated by blanks, and their rows that are not data."""
