"""From what users have (arrays, frames, sparse, scanned and Dask tables) to what the engine takes."""
