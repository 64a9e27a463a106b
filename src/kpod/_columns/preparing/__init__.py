"""From a raw table to the matrix that is clustered."""
