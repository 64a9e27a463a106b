"""Tables in files: reading, scanning, writing."""
