"""Foreign parsers in a child process with limits on memory and time."""
