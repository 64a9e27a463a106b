"""Model selection on the table itself: the number of clusters, informative missingness."""
