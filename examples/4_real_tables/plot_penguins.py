"""
Penguins: numbers and categories together
=========================================

344 penguins: four measurements, the island and the sex, with a few gaps in the original table, and 30 % more
removed for this example. `TablePreparer` puts numbers and categories on one scale.
"""

import numpy as np
from matplotlib import pyplot as plt
from palmerpenguins import load_penguins
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

import kpod

penguins = load_penguins()
measured = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
table = penguins[[*measured, "island", "sex"]]
rng = np.random.default_rng(0)
table = table.mask(rng.random(table.shape) < 0.3)
table = table[table[measured].notna().any(axis=1)]
species = penguins.loc[table.index, "species"]

models = {
    "measurements only": make_pipeline(
        kpod.TablePreparer(categories="all"), kpod.KPOD(3, random_state=0)
    ).fit(table[measured]),
    "with island and sex": make_pipeline(
        kpod.TablePreparer(categories="all"), kpod.KPOD(3, random_state=0)
    ).fit(table),
}
for name, model in models.items():
    score = adjusted_rand_score(species, model[-1].labels_)
    print(f"{name}: adjusted Rand score {score:.2f} against the species")

# %%
# Categories are not always a gain. Here they group penguins by where they live and by sex as well, which is
# not the same as by species. The composition of each cluster:

model = models["with island and sex"]
display = kpod.plot.CentersDisplay.from_estimator(model, table)
plt.show()

# %%
# And the clusters from the measurements alone, in their own units:

kpod.plot.ColumnsDisplay.from_estimator(models["measurements only"], table[measured])
plt.show()
