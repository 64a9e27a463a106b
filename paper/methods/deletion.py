"""k-means after deleting every column with a gap; elsewhere than under MAR none would be left."""

from paper.methods._r import kmeans_in_r_after

METHOD = kmeans_in_r_after("deletion", "deletion", None, mechanisms=("MAR",))
