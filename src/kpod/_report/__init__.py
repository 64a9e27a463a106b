"""What came out of a fit, worked out once and said in words: for the terminal, the pictures, the page."""
