"""The sentence of each kind of note and caution, the only place where they are worded.

Remedies are worded with `option`, so that they can be pasted where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kpod._common.errors import printable
from kpod._common.notes import Note
from kpod._common.options import in_the_shell, option
from kpod._common.sentences import table_sentences
from kpod._common.sentences.formatting import MOST_LISTED, counted, listed, number, percent, some
from kpod._common.sentences.shape_sentences import shape_of_clusters


def sentence(note: Note) -> str:
    """The wording of a note."""
    return WORDS[note.kind](note, **note.values)


def title(note: Note) -> str:
    """The heading of a caution."""
    if note.kind == "contradicted cluster":
        return f"The probabilities contradict cluster {note.values['cluster']}"
    return note.kind[0].upper() + note.kind[1:]


def names_in(note: Note) -> list[str]:
    return [printable(name) for name in note.columns]


def name_of(note: Note) -> str:
    return names_in(note)[0]


# How a file was read


def rows_left_out(_: Note, what: str, where: str, unit: str, n: int, cells: Sequence[str]) -> str:
    was = "was" if n == 1 else "were"
    return f"{rows_that_hold(what, where, unit, n, cells)}, and {was} left out."


def rows_that_hold(what: str, where: str, unit: str, n: int, cells: Sequence[str]) -> str:
    """Rows that are no data, with the first words of what they hold."""
    quoted = [f"'{cell if len(cell) <= 40 else cell[:39] + '…'}'" for cell in dict.fromkeys(cells)]
    which, verb = (unit, "holds") if n == 1 else (counted(n, unit), "hold")
    return printable(f"the {where} {which} ({some(quoted, most=3)}) {verb} {what}")


def empty_parts(_: Note, parts: Sequence[str]) -> str:
    have, were = ("has", "was") if len(parts) == 1 else ("have", "were")
    return f"{some(list(parts), most=3)} {have} no rows, and {were} skipped."


def extra_columns(note: Note, part: str, first: str) -> str:
    return f"{part} has columns that are not in {first}, which were left out: {some(names_in(note))}."


def other_sheets(_: Note, sheet: str, others: Sequence[str]) -> str:
    return printable(
        f"only sheet '{sheet}' was read, not {some(others)}; choose another with {option('--sheet')}."
    )


def merged_cells(note: Note) -> str:
    return f"merged cells in {some(names_in(note))} count for every row they span."


def labelled_codes(note: Note, labels: dict[str, str]) -> str:
    words = ", ".join(f"{code} '{label}'" for code, label in list(labels.items())[:4])
    use = option("--missing", {note.columns[0]: list(labels)})
    return f"{name_of(note)}: {printable(words)} may stand for missing; if so, use {use}."


def taken_as_category(note: Note, found: Sequence[str], why: str) -> str:
    because = {
        "other codes": "because gaps elsewhere in the table are marked otherwise",
        "plus": "because the other values are '+'",
    }[why]
    add = option("--missing", {note.columns[0]: list(found)})
    first = printable(found[0])
    return f"{name_of(note)}: '{first}' is taken as a category, {because}; if it means missing, add {add}."


def absent_code(_: Note, code: str) -> str:
    column, equals, value = code.rpartition("=")
    given = option("--missing", {column: value} if equals else code)
    return f"{given}: this value does not occur in the table."


# Columns


def possible_code(note: Note, codes: Sequence[str], n: int = 0, everywhere: bool = True) -> str:
    return code_sentence(note, codes, n, everywhere, quoted=False)


def possible_no_answer(note: Note, codes: Sequence[str], n: int = 0, everywhere: bool = True) -> str:
    return code_sentence(note, codes, n, everywhere, quoted=True)


def code_sentence(note: Note, codes: Sequence[str], n: int, everywhere: bool, *, quoted: bool) -> str:
    parts = [printable(f"'{code}'" if quoted else code) for code in codes]
    if len(note.columns) == 1:
        times = "once" if n == 1 else f"{n:,} times"
        use = option("--missing", {note.columns[0]: list(codes)})
        which = listed(parts) if quoted else " and ".join(parts)
        return f"{name_of(note)}: {which} ({times}) may stand for missing; if so, use {use}."
    far = "" if quoted else ", far from the other values"
    use = option("--missing", list(codes) if everywhere else {"NAME": list(codes)})
    return f"{' and '.join(parts)} may stand for missing in {some(names_in(note))}{far}; if so, use {use}."


def plain_numbers(note: Note, what: str, about: str, shown: str = "") -> str:
    """On years and coordinates: when and where."""
    if len(note.columns) == 1:
        use = option("--exclude", list(note.columns))
        return (
            f"{name_of(note)}: {shown or what} are clustered as plain numbers; use {use} if {about} should "
            "not shape the clusters."
        )
    few = len(note.columns) <= MOST_LISTED
    use = option("--exclude", list(note.columns) if few else None)
    return f"{some(names_in(note))}: {what} are clustered as plain numbers; use {use} if they should not be."


def years(note: Note, low: int = 0, high: int = 0) -> str:
    return plain_numbers(note, "years", "time", f"years ({low} to {high})")


def coordinates(note: Note) -> str:
    return plain_numbers(note, "coordinates", "place")


def logarithms_chosen(note: Note) -> str:
    its, are = ("its logarithm is", "is") if len(note.columns) == 1 else ("their logarithms are", "are")
    return (
        f"{some(names_in(note))} {are} skewed: {its} used; {option('--scale', 'standard')} uses the "
        "values themselves."
    )


def values_limited(note: Note, n: Sequence[int], low: Sequence[float], high: Sequence[float]) -> str:
    """On values that held most of the variance of their column."""
    columns = zip(names_in(note), n, low, high, strict=True)
    text = some([f"{name} ({many:,} outside {number(a)} to {number(b)})" for name, many, a, b in columns])
    return (
        f"a few extreme values are moved to limits: {text}; {option('--scale', 'standard')} keeps them as "
        "they are."
    )


def number_format(note: Note, example: str) -> str:
    if len(note.columns) == 1:
        return f"{name_of(note)}: {printable(example)}."
    return f"numbers in {some(names_in(note))} were written as text: {printable(example)}."


def followed_column(note: Note, share: float, commonest: float) -> str:
    name = name_of(note)
    return (
        f"the clusters largely follow {name}, which was not clustered: {percent(share)} of the rows have the "
        f"{name} that is most common in their cluster ({percent(commonest)} have the one that is most common "
        "overall)."
    )


def two_readings(note: Note, what: str) -> str:
    return f"{name_of(note)}: {what}"


def not_a_number(note: Note, entry: str, where: str, treat: str) -> str:
    return (
        f"{name_of(note)}: '{printable(entry)}' ({where}) is not a number; correct it, or treat it as "
        f"missing{treat}."
    )


# New rows


def unseen_levels(note: Note, levels: Sequence[str], n: int, taken: str) -> str:
    which = some([f"'{printable(value)}'" for value in levels])
    are = "is" if len(levels) == 1 else "are"
    return (
        f"{name_of(note)}: {which} ({counted(n, 'row')}) {are} not among the categories the model was "
        f"fitted on, and taken as {taken}."
    )


def unknown_items(_: Note, items: Sequence[str]) -> str:
    are = "is" if len(items) == 1 else "are"
    names = [printable(item) for item in items]
    return f"{counted(len(items), 'item')} ({some(names)}) {are} not in the model, and ignored."


def dates_not_filled(note: Note) -> str:
    return f"{name_of(note)}: dates are not filled."


def filled_from_table(note: Note, n: int) -> str:
    return (
        f"{name_of(note)}: {counted(n, 'gap')} {'was' if n == 1 else 'were'} filled from the whole table, "
        "because the model knows no value from the row's cluster."
    )


def not_filled(note: Note) -> str:
    return f"{name_of(note)}: not filled; the model has never seen a value of this column."


def warning(_: Note, message: str) -> str:
    return printable(message)


# Cautions


def contradicted_cluster(_: Note, cluster: int, n: int, size: int, other: int, of_two: bool) -> str:
    to = f"cluster {other}" if of_two else f"another cluster (mostly {other})"
    return (
        f"{n:,} of the {counted(size, 'row')} of cluster {cluster} {'belongs' if n == 1 else 'belong'} more "
        f"probably to {to}. Do not use it as a group without checking."
    )


def not_round(_: Note, spreads: bool, correlated: bool, error: float) -> str:
    why = [
        *(["variances differ"] if spreads else []),
        *(["columns are correlated within clusters"] if correlated else []),
    ]
    mixture = f"a Gaussian mixture ({option('--shape', 'full')})" if in_the_shell() else "kpod.GaussianMixture"
    return (
        "The probabilities assume round clusters of the same spread, but "
        f"{listed(why)}: they are off by {100 * error:.0f} percentage points on average, or more. Those of "
        f"{mixture} allow for that."
    )


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
    **table_sentences.WORDS,
    "shape of the clusters": shape_of_clusters,
    "rows left out": rows_left_out,
    "empty parts": empty_parts,
    "extra columns": extra_columns,
    "other sheets": other_sheets,
    "merged cells": merged_cells,
    "labelled codes": labelled_codes,
    "taken as a category": taken_as_category,
    "absent code": absent_code,
    "possible code": possible_code,
    "possible no answer": possible_no_answer,
    "years": years,
    "coordinates": coordinates,
    "logarithms chosen": logarithms_chosen,
    "values limited": values_limited,
    "number format": number_format,
    "followed column": followed_column,
    "two readings": two_readings,
    "not a number": not_a_number,
    "unseen levels": unseen_levels,
    "unknown items": unknown_items,
    "dates not filled": dates_not_filled,
    "filled from the table": filled_from_table,
    "not filled": not_filled,
    "warning": warning,
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
