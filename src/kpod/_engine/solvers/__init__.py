"""How the objective is lowered: Lloyd, single-row moves, mini-batches, the published algorithm."""
