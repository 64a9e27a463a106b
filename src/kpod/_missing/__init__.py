"""Which entries are missing, and what that goes with."""
