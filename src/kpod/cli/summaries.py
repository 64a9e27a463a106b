"""What was read and what came out, as plain data: for --json, the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kpod import __version__

if TYPE_CHECKING:
    from kpod._choose import KChoice
    from kpod._io.tables import Choice, TableFile
    from kpod._report.summary import Clustering


@contextmanager
def noting() -> Iterator[list[str]]:
    """Warnings as notes, one line each."""
    import warnings

    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)


def summary_of_data(table: TableFile, choice: Choice) -> dict[str, Any]:
    used = [table.column(name) for name in choice.used]
    marks: dict[str, int] = {}
    for column in used:
        for mark, n in column.marks.items():
            marks[mark] = marks.get(mark, 0) + n
    missing = sum(column.missing for column in used)
    return {
        "kpod": __version__,
        "data": table.source,
        "rows": table.n_rows,
        "columns": choice.used,
        "set_aside": choice.aside,
        "text_file": vars(table.dialect) if table.dialect else None,
        "missing": missing,
        "missing_share": missing / (table.n_rows * len(used)),
        "marks": dict(sorted(marks.items(), key=lambda item: -item[1])),
    }


def summary_of(
    table: TableFile,
    choice: Choice,
    c: Clustering,
    notes: list[str],
    scale: bool,
    number: KChoice | None = None,
) -> dict[str, Any]:
    from kpod._report.words import finite

    kpod = c.kpod
    return {
        **summary_of_data(table, choice),
        "settings": {
            "clusters": kpod.n_clusters,
            "algorithm": kpod.algorithm,
            "starts": kpod.n_init,
            "seed": kpod.random_state,
            "scaled": scale,
        },
        **({"choice": summary_of_choice(number)} if number else {}),
        "loss": float(kpod.inertia_),
        "iterations": len(kpod.loss_curve_),
        "converged": c.converged,
        "clusters": [
            {
                "cluster": cluster,
                "rows": int(c.sizes[cluster]),
                "sentence": c.sentence(cluster),
                "center": dict(zip(c.names, map(finite, c.centers[cluster]), strict=True)),
                "observed": dict(zip(c.names, map(int, c.counts[cluster]), strict=True)),
            }
            for cluster in range(c.k)
        ],
        "unassigned": int((c.labels < 0).sum()),
        "notes": notes,
    }


def summary_of_choice(number: KChoice) -> dict[str, Any]:
    """Why this number of clusters."""
    from kpod._report.words import finite

    table = number.table_
    return {
        "clusters": number.best_k_,
        "clear": number.clear_,
        "reason": number.reason_,
        "sentence": number.sentence_,
        "hidden_entries": number.n_hidden_,
        "rows": number.n_rows_,
        "tried": [
            {
                "clusters": int(k),
                **{name: finite(values[i]) for name, values in table.items() if name != "k"},
            }
            for i, k in enumerate(table["k"])
        ],
    }
