"""Gaussian mixtures on the observed entries, fitted by EM."""
