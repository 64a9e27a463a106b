"""The experiments of Chi, Chi & Baraniuk (2016), run again: `python -m paper --help`."""

PROTOCOL = 1  # a results file of another protocol is never mixed with this one's
