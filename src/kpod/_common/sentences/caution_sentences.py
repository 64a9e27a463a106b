"""The sentence of each kind of caution, and its heading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kpod._common.errors import printable
from kpod._common.notes import Note
from kpod._common.options import in_the_shell, option
from kpod._common.sentences.formatting import (
    MOST_LISTED,
    counted,
    listed,
    name_of,
    names_in,
    number,
    percent,
    some,
)


def title(note: Note) -> str:
    """The heading of a caution."""
    if note.kind == "contradicted cluster":
        return f"The probabilities contradict cluster {note.values['cluster']}"
    return note.kind[0].upper() + note.kind[1:]


def contradicted_cluster(_: Note, cluster: int, n: int, size: int, other: int, of_two: bool) -> str:
    to = f"cluster {other}" if of_two else f"another cluster (mostly {other})"
    return (
        f"{n:,} of the {counted(size, 'row')} of cluster {cluster} {'belongs' if n == 1 else 'belong'} more "
        f"probably to {to}. Do not use it as a group without checking."
    )


def not_round(_: Note, spreads: bool, correlated: bool, error: float, refused: bool = False) -> str:
    why = [
        *(["variances differ"] if spreads else []),
        *(["columns are correlated within clusters"] if correlated else []),
    ]
    mixture = (
        f"a Gaussian mixture ({option('--shape', 'full')})" if in_the_shell() else "kpod.GaussianMixture"
    )
    text = (
        "The probabilities assume round clusters of the same spread, but "
        f"{listed(why)}: they are off by {100 * error:.0f} percentage points on average, or more."
    )
    return text if refused else f"{text} Those of {mixture} allow for that."


def unstable_clusters(_: Note, clusters: Sequence[int], jaccard: Sequence[float]) -> str:
    which = f"cluster{'' if len(clusters) == 1 else 's'} {some([str(cluster) for cluster in clusters])}"
    similarity = some([f"{value:.2f}" for value in jaccard])
    return (
        f"Do not rely on {which} (mean Jaccard similarity {similarity} in resampled tables): another sample "
        "of rows would give other clusters there."
    )


def not_converged(_: Note, max_iter: int) -> str:
    return (
        f"The fit was stopped at {max_iter} iterations while still improving. "
        "Allow more (max_iter) before relying on it."
    )


def other_table(_: Note) -> str:
    return "The rows shown were assigned to clusters that were fitted on another table, or with row weights."


def starts_disagree(_: Note, starts: int, worse: float) -> str:
    return (
        f"The best loss was found in 1 of {starts} starts; the next is {percent(worse)} higher. Another seed "
        f"may give different clusters: use more starts ({option('--starts', 5 * starts)}) and compare."
    )


def rows_text(rows: Sequence[Any], n: int, named: bool) -> str:
    what = "" if named else "row " if n == 1 else "rows "
    return what + some([printable(row) for row in rows], n)


def rows_with_nothing(_: Note, n: int, rows: Sequence[Any], named: bool) -> str:
    return (
        f"{counted(n, 'row')} ({rows_text(rows, n, named)}) with nothing observed could not be assigned "
        "(cluster -1)."
    )


def rows_with_little(_: Note, n: int, rows: Sequence[Any], named: bool, clusters: bool) -> str:
    verb, rest = ("has", "its cluster rests") if n == 1 else ("have", "their clusters rest")
    so = f": {rest} on few values" if clusters else ""
    return (
        f"{counted(n, 'row')} ({rows_text(rows, n, named)}) {verb} at most a quarter of the columns "
        f"observed{so}."
    )


def rows_between(_: Note, n: int, share: float, sampled: bool, by: str = "distance") -> str:
    who = f"Some {percent(share, 1)} of the rows" if sampled else f"{counted(n, 'row')} ({percent(share, 1)})"
    verb, own = ("is", "its own") if n == 1 and not sampled else ("are", "their own")
    if by == "probability":
        return f"{who} {verb} about as likely in another cluster as in {own}."
    return f"{who} {verb} nearly equidistant from two centers."


def unexpected_values(_: Note, n: int, cells: Sequence[tuple[str, str, str]], named: bool) -> str:
    parts = [
        f"{'' if named else 'row '}{printable(row)}, {printable(name)} {value}" for row, name, value in cells
    ]
    one = n == 1
    return (
        f"{counted(n, 'value')}, unlikely in every cluster given the rest of the row, "
        f"{'was' if one else 'were'} treated as missing: {listed_apart(parts, n)}. Check "
        f"whether {'it is' if one else 'they are'} right."
    )


def listed_apart(cells: Sequence[str], n: int) -> str:
    """Things with commas of their own."""
    shown = cells[:MOST_LISTED]
    more = [f"{n - len(shown):,} more"] if n > len(shown) else []
    return "; ".join([*shown, *more])


def small_clusters(
    note: Note, clusters: Sequence[int], least: int, far: Sequence[float], **remedies: Any
) -> str:
    names = some([str(cluster) for cluster in clusters])
    which = f"cluster {names}" if len(clusters) == 1 else f"clusters {names}"
    first = f"Fewer than {least} rows in {which}: possibly outliers rather than a group"
    if not note.columns:
        return f"{first}."
    pairs = zip(names_in(note), far, strict=True)
    text = listed([f"{name} ({off:.0f} standard deviations from the mean)" for name, off in pairs])
    return f"{first}; extreme in {text}. {remedy(**remedies)}."


def remedy(n_extreme: int, log: Sequence[str], clip: float | None, in_memory: bool) -> str:
    """What can be done about extreme values: clip as many, or take logarithms where these are the largest."""
    these = "this value" if n_extreme == 1 else "these values"
    if not in_memory:  # the options need the table in memory
        return f"Clip, or take logarithms, before clustering if {these} should not drive it"
    ways = [
        *([f"take logarithms ({option('--log', list(log))})"] if log else []),
        *([f"clip ({option('--clip', clip)})"] if clip is not None else []),
    ]
    text = " or ".join(ways) or "look at them first"
    return f"{text[0].upper()}{text[1:]} if {these} should not drive the clustering"


def few_observations(_: Note, cells: Sequence[tuple[str, int, float]], least: int) -> str:
    parts = [f"{printable(name)} in cluster {cluster} ({number(count)})" for name, cluster, count in cells]
    rest = "rests" if len(cells) == 1 else "rest"
    return (
        f"{counted(len(cells), 'value')} of the centers {rest} on fewer than {least} observed entries: "
        f"{some(parts)}."
    )


def few_values_dominate(
    note: Note, few: Sequence[tuple[int, int]], sampled: bool, n_extreme: int, **remedies: Any
) -> str:
    of = " sampled" if sampled else ""
    pairs = zip(names_in(note), few, strict=True)
    text = some([f"{name} ({n:,} of {total:,}{of})" for name, (n, total) in pairs])
    who = "A few extreme values make" if n_extreme > 1 else "One extreme value makes"
    return f"{who} up more than half of the variance of {text}. {remedy(n_extreme=n_extreme, **remedies)}."


def mostly_missing(note: Note, shares: Sequence[float]) -> str:
    pairs = zip(names_in(note), shares, strict=True)
    text = some([f"{name} ({percent(share)})" for name, share in pairs])
    return f"More than half of the entries are missing in {text}."


def uneven_gaps(note: Note, least: Sequence[float], most: Sequence[float]) -> str:
    triples = zip(names_in(note), least, most, strict=True)
    text = some([f"{name} ({percent(low)} to {percent(high)})" for name, low, high in triples])
    return (
        f"The share of missing entries differs between clusters in {text}. If gaps depend on the cluster, a "
        "better fit does not mean truer groups; find out why these values are missing."
    )


def one_column_outweighs(note: Note, share: float) -> str:
    return (
        f"{name_of(note)} accounts for {percent(share)} of the total variance, because columns are on "
        "different scales; standardise them unless they share a unit."
    )


WORDS: dict[str, Callable[..., str]] = {
    "contradicted cluster": contradicted_cluster,
    "clusters that are not round": not_round,
    "unstable clusters": unstable_clusters,
    "not converged": not_converged,
    "not the table the model was fitted on": other_table,
    "starts disagree": starts_disagree,
    "rows with nothing observed": rows_with_nothing,
    "rows with little observed": rows_with_little,
    "rows between two clusters": rows_between,
    "values that no cluster expects": unexpected_values,
    "small clusters": small_clusters,
    "few observations behind a center": few_observations,
    "a few values dominate": few_values_dominate,
    "columns mostly missing": mostly_missing,
    "gaps differ between clusters": uneven_gaps,
    "one column outweighs the others": one_column_outweighs,
}
