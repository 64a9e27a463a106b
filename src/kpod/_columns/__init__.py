"""What the columns of a table mean: roles, missing codes, number formats, dates."""
