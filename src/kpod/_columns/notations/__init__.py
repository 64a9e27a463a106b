"""How numbers and dates are written in text."""
