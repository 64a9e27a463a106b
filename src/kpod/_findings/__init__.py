"""What can be said of clusters: profiles, how sure and how stable they are, what to be careful about."""
