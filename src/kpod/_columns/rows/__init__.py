"""Rows of a table that are no single thing: copies, sums of others, several of one individual."""
