"""How the pictures of the gallery look."""

from kpod.plot._display import PALETTE


def look(gallery_conf, name):
    """Set before each example: few lines, and colours that survive colour-blindness."""
    from matplotlib import pyplot as plt

    plt.rcParams["axes.prop_cycle"] = plt.cycler(color=PALETTE)
    plt.rcParams["axes.spines.top"] = plt.rcParams["axes.spines.right"] = False
