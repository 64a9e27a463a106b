"""Tables that are read a piece at a time."""
