"""scikit-learn's KNNImputer: gaps take the mean of the five nearest rows."""

from sklearn.impute import KNNImputer

from paper.methods._kmeans import kmeans_after

METHOD = kmeans_after("neighbours", "KNNImputer", lambda problem: KNNImputer().fit_transform(problem.X))
