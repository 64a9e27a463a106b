"""scikit-learn's SimpleImputer: gaps take the column's mean."""

from sklearn.impute import SimpleImputer

from paper.methods._kmeans import kmeans_after

METHOD = kmeans_after("mean", "SimpleImputer", lambda problem: SimpleImputer().fit_transform(problem.X))
