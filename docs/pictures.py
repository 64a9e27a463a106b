"""How the pictures of the gallery look, and in which order its examples come."""

from kpod.plot._display import PALETTE


def look(gallery_conf, name):
    """Set before each example: few lines, and colours that survive colour-blindness."""
    from matplotlib import pyplot as plt

    plt.rcParams["axes.prop_cycle"] = plt.cycler(color=PALETTE)
    plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False


ORDER = [
    *("first_look", "how_it_works", "against_imputing", "algorithms"),
    *("choose_k", "no_groups", "not_round", "confidence", "stability"),
    *("detection_limit", "misleading_gaps"),
    *("fertility", "penguins", "digits", "photograph"),
    *("ratings", "from_disk", "stream"),
]


class Order:
    """Examples of a section in the order in which they build on one another."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, name):
        return ORDER.index(name.removeprefix("plot_").removesuffix(".py"))
