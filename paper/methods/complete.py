"""k-means on the complete table: what there would be to find without gaps, the ceiling."""

from paper.methods._kmeans import kmeans_after

METHOD = kmeans_after("complete", "complete table", lambda problem: problem.complete)
