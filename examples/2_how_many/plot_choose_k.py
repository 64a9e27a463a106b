"""
How many clusters?
==================

`choose_k` hides a tenth of the observed entries, clusters the table without them, and predicts them from
the cluster means. Too few clusters predict badly, and so do too many.
"""

from matplotlib import pyplot as plt
from sklearn.preprocessing import StandardScaler

import kpod
from kpod.datasets import load_incomplete_wine

X = StandardScaler().fit_transform(load_incomplete_wine().data)
choice = kpod.choose_k(X, range(1, 8), random_state=0)
kpod.plot.ChooseKDisplay.from_choice(choice)
plt.show()

# %%
# The answer in a sentence, and as a table. `clear_` says whether it can be relied on.

print(choice.sentence_)
print(choice)
