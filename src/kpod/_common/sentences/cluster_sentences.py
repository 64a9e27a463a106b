"""Sentences on clusters: what sets each of them apart, with the values behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kpod._common.sentences.formatting import counted, listed


def cluster_sentence(
    cluster: int, n_rows: int, traits: Sequence[Any], varied: Sequence[Any], contrast: Any, known: str
) -> str:
    """One line on a cluster; `known`: for how many columns there are data, "all", "some" or "nothing"."""
    otherwise = {
        "all": "close to the average throughout",
        "some": "close to the average in what is known",
        "nothing": "too few to say more",
    }[known]
    text = [*trait_clauses(traits), *map(varied_clause, varied)] or [otherwise]
    if contrast is not None:
        text.append(contrast_clause(contrast))
    return f"cluster {cluster}: {counted(n_rows, 'row')}, {', '.join(text)}"


def trait_clauses(traits: Sequence[Any]) -> list[str]:
    """Traits of the same kind together, in the order of the clearest of each."""
    kinds = list(dict.fromkeys(trait.kind for trait in traits))
    return [
        f"{kind}{' in' if kind in ('high', 'low') else ''} "
        f"{listed([trait_text(trait) for trait in traits if trait.kind == kind])}"
        for kind in kinds
    ]


def trait_text(trait: Any) -> str:
    """A column with its value beside that of the other clusters: budget (12M, others 45M)."""
    behind = kind_of_mean(trait)
    if trait.known is not None:
        behind.append(f"known for {trait.known[0]:,} of {trait.known[1]:,}")
    return f"{trait.name} ({'; '.join([f'{trait.value}, others {trait.others}', *behind])})"


def kind_of_mean(about: Any) -> list[str]:
    """What the values are, where they are not the plain means of the rows."""
    return [
        *([f"means of {about.means_of}"] if about.means_of else ()),
        *([f"without {counted(about.left_out, 'outlying value')}"] if about.left_out else ()),
    ]


def varied_clause(varied: Any) -> str:
    where = "throughout" if varied.throughout else f"in {listed(varied.names)}"
    return f"{'more' if varied.more else 'less'} varied {where}"


def contrast_clause(contrast: Any) -> str:
    values = "; ".join([f"{contrast.value}, there {contrast.there}", *kind_of_mean(contrast)])
    return f"unlike cluster {contrast.cluster}, the nearest, in {contrast.name} ({values})"
