"""The steps of EM, over the blocks of a table."""
