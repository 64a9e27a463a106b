"""Steps on the workers of a cluster: what runs there, what travels, and who hands it out."""
