"""Which entries are missing, and what missingness is related to."""
