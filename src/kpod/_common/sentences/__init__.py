"""What is said, in words: notes and numbers."""
