"""The Gaussian mixture, with scikit-learn's conventions."""
