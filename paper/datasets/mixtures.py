"""Round normal clusters, 500 x 100: means of standard deviation 10, covariance 10 I."""

from kpod.datasets import make_mixture
from paper.datasets import Design

PERCENTS = {"MCAR": (25, 50, 75), "NMAR": (25, 50, 75)}

MIXTURES = tuple(
    Design(
        name=f"k{k}",
        title=f"simulated, {k} clusters",
        n_clusters=k,
        make=lambda rng, k=k: make_mixture(k, rng=rng),
        percents=PERCENTS,
        numbers=numbers,
    )
    for k, numbers in ((10, (3, 4)), (25, (5, 6)))
)
