"""Findings about clusters: profiles, certainty, stability, cautions."""
