"""What was read and what came out, as plain data: for --json, the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpod._analysis.clustering import Clustering
    from kpod._analysis.prepare import Encode
    from kpod._analysis.stability import Stability
    from kpod._columns.tables import TableFile
    from kpod._columns.usage import ColumnUsage
    from kpod._selection.number import KChoice


@contextmanager
def noting() -> Iterator[list[str]]:
    """Warnings as notes, one line each."""
    import warnings

    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)


def summary_of_data(table: TableFile, choice: ColumnUsage) -> dict[str, Any]:
    from kpod import __version__

    used = [table.by_name[name] for name in choice.used if name in table.by_name]
    marks: dict[str, int] = {}
    for column in used:
        for mark, n in column.marks.items():
            marks[mark] = marks.get(mark, 0) + n
    missing = sum(column.missing for column in used)
    return {
        "kpod": __version__,
        "data": table.source,
        "in_pieces": table.in_pieces,
        "rows": table.n_rows,
        "columns": choice.used,
        "set_aside": choice.aside,
        "text_file": vars(table.dialect) if table.dialect else None,
        "missing": missing,
        "missing_share": missing / max(1, table.n_rows * len(used)),
        "marks": dict(sorted(marks.items(), key=lambda item: -item[1])),
    }


def summary_of(
    table: TableFile,
    choice: ColumnUsage,
    c: Clustering,
    notes: list[str],
    encode: Encode,
    number: KChoice | None = None,
    again: Stability | None = None,
) -> dict[str, Any]:
    from kpod._analysis.cautions import cautions
    from kpod._analysis.certainty import how_sure
    from kpod._common.words import finite

    kpod = c.kpod
    return {
        **summary_of_data(table, choice),
        "missing": round(c.source.share_missing * c.source.shape[0] * c.source.shape[1]),
        "missing_share": c.source.share_missing,
        "settings": {
            "clusters": kpod.n_clusters_,
            "algorithm": kpod.algorithm,
            "starts": kpod.n_init,
            "seed": kpod.random_state,
            "scaled": encode.scale != "none",
            **({"scale": "median and interquartile range"} if encode.scale == "robust" else {}),
            **({"categories": list(choice.categories)} if choice.categories else {}),
            **({"log": list(encode.log)} if encode.log else {}),
            **({"clip": encode.clip} if encode.clip else {}),
            **({"shrinkage": kpod.shrinkage_} if kpod.shrinkage_ else {}),
            **({"missingness": kpod.missingness} if kpod.missingness != "ignore" else {}),
        },
        **(
            {"missingness": str(decision)} if (decision := getattr(kpod, "missingness_decision_", "")) else {}
        ),
        **({"choice": summary_of_choice(number, again)} if number else {}),
        "loss": float(kpod.inertia_),
        "iterations": len(kpod.loss_curve_),
        "converged": c.converged,
        "starts": summary_of_starts(c),
        **({"confidence": sure} if (sure := how_sure(c, choice.row_names(table))) else {}),
        **({"stability": summary_of_stability(again)} if again else {}),
        "clusters": [
            {
                "cluster": cluster,
                "rows": int(c.sizes[cluster]),
                "sentence": c.sentence(cluster),
                "typical": [i + 1 for i in c.typical(cluster)],
                "center": dict(zip(c.names, map(finite, c.centers[cluster]), strict=True)),
                "observed": dict(zip(c.names, map(int, c.counts[cluster]), strict=True)),
            }
            for cluster in range(c.k)
        ],
        "unassigned": int((c.labels < 0).sum()),
        "cautions": cautions(c, choice.row_names(table), again),
        "notes": notes,
    }


def summary_of_starts(c: Clustering) -> dict[str, Any]:
    """How many starts, and how many of them found the best loss."""
    from kpod._analysis.certainty import starts_of
    from kpod._common.words import best_found

    losses = [float(loss) for loss in c.kpod.losses_]
    return {"starts": len(losses), "found_best": best_found(losses), "sentence": starts_of(c)}


def summary_of_stability(again: Stability) -> dict[str, Any]:
    from kpod._common.words import finite

    return {
        "jaccard": [finite(value) for value in again.jaccard_],
        "adjusted_rand_index": again.ari_,
        "sentence": again.sentence_,
    }


def summary_of_choice(number: KChoice, again: Stability | None = None) -> dict[str, Any]:
    """Why this number of clusters."""
    from kpod._analysis.certainty import why_this_number
    from kpod._common.words import finite

    table = number.table_
    return {
        "clusters": number.best_k_,
        "clear": number.clear_,
        "reason": number.reason_,
        "sentence": why_this_number(number, again),
        "hidden_entries": number.n_hidden_,
        "gaps_predicted": number.gaps_,
        "correlated": number.correlated_,
        "rows": number.n_rows_,
        "tried": [
            {
                "clusters": int(k),
                **{name: finite(values[i]) for name, values in table.items() if name != "k"},
            }
            for i, k in enumerate(table["k"])
        ],
    }
