"""What a fit leaves open, decided on the table itself: the number of clusters, informative missingness."""
