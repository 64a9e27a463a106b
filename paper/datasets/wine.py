"""UCI wine with noise of a tenth of each column's mean: 178 x 13, three cultivars."""

from kpod.datasets import make_perturbed_wine
from paper.datasets import Design

WINE = Design(
    name="wine",
    title="wine (3 clusters)",
    n_clusters=3,
    make=make_perturbed_wine,
    percents={"MCAR": (5, 15, 25, 35, 45), "MAR": (4, 8, 12, 16, 19), "NMAR": (5, 15, 25, 35, 45)},
    numbers=(1, 2),
    mar_columns=(0, 3, 6),
)
