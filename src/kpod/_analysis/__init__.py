"""From a table to its analysis, which Python, the command line and the report show."""
