"""k-means after R's mi, at its defaults."""

from paper.methods._r import kmeans_in_r_after

METHOD = kmeans_in_r_after("mi", "mi", "mi")
