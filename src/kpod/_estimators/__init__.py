"""scikit-learn estimators: KPOD, MiniBatchKPOD, ObservedScaler."""
