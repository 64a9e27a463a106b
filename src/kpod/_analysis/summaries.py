"""What was read and what came out, as plain data: for --json, the terminal and the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpod._common.notes import Note
from kpod._common.sentences.caution_sentences import title
from kpod._common.sentences.formatting import best_found, finite
from kpod._common.sentences.verdict_sentences import why
from kpod._findings.certainty import starts_of, why_this_number
from kpod._findings.fitted_clusters import mixture_spread
from kpod._findings.fitted_clusters.models import is_mixture

if TYPE_CHECKING:
    from kpod._analysis.analysis import Analysis
    from kpod._analysis.prepared import Prepared
    from kpod._analysis.verdict import Verdict
    from kpod._columns.preparing.columns_in_use import ColumnUsage
    from kpod._columns.preparing.preparer import TablePreparer
    from kpod._columns.tables import TableFile
    from kpod._findings.fitted_clusters.clustering import Clustering
    from kpod._findings.stability import Stability
    from kpod._model_selection.number_of_clusters import KChoice


def summary_of_data(table: TableFile, usage: ColumnUsage) -> dict[str, Any]:
    from kpod import __version__

    used = [table.by_name[name] for name in usage.used if name in table.by_name]
    codes: dict[str, int] = {}
    for column in used:
        for code, n in column.missing_codes.items():
            codes[code] = codes.get(code, 0) + n
    missing = sum(column.missing for column in used)
    return {
        "kpod": __version__,
        "data": table.source,
        "in_pieces": table.in_pieces,
        "rows": table.n_rows,
        "columns": usage.used,
        "set_aside": usage.unused,
        "text_file": vars(table.dialect) if table.dialect else None,
        "missing": missing,
        "missing_share": missing / max(1, table.n_rows * len(used)),
        "marks": dict(sorted(codes.items(), key=lambda item: -item[1])),
    }


def summary_of_prepared(prepared: Prepared) -> dict[str, Any]:
    """What is going to be clustered, before that begins."""
    summary = summary_of_data(prepared.table, prepared.usage)
    if prepared.n_missing is not None:
        n_cells = max(1, prepared.table.n_rows * len(prepared.usage.used))
        summary |= {"missing": prepared.n_missing, "missing_share": prepared.n_missing / n_cells}
    return {**summary, "notes": [note.to_dict() for note in prepared.notes]}


def summary_of(analysis: Analysis) -> dict[str, Any]:
    """Everything about an analysis that has been computed."""
    c, kpod = analysis._clustering, analysis._clustering.kpod
    confidence, again = analysis._known("confidence"), analysis._known("stability")
    decision = str(getattr(kpod, "missingness_decision_", ""))
    verdict, rule, numbers = (analysis._known(name) for name in ("verdict", "rule", "other_numbers"))
    return {
        **({"verdict": verdict.to_dict()} if verdict else {}),
        **summary_of_data(analysis._table, analysis._usage),
        "missing": round(c.source.share_missing * c.source.shape[0] * c.source.shape[1]),
        "missing_share": c.source.share_missing,
        "settings": settings_of(analysis),
        **({"missingness": decision} if decision else {}),
        **({"choice": summary_of_choice(analysis.choice, again, verdict)} if analysis.choice else {}),
        **({"shape_choice": analysis.shape.to_dict()} if analysis.shape else {}),
        **({"outcome": analysis.outcome.to_dict()} if analysis.outcome else {}),
        **summary_of_fit(c),
        **({"confidence": confidence} if confidence else {}),
        **({"stability": summary_of_stability(again)} if again else {}),
        **({"rule": rule.to_dict()} if rule else {}),
        **({"other_numbers": [one.to_dict() for one in numbers]} if numbers else {}),
        "clusters": [
            {
                "cluster": cluster,
                "rows": int(c.sizes[cluster]),
                "sentence": c.sentence(cluster),
                "nearest": None if (contrast := c.contrast(cluster)) is None else vars(contrast),
                **typical_rows(analysis, cluster),
                "center": dict(zip(c.names, map(finite, c.centers[cluster]), strict=True)),
                **({"spread": spread_of(c, cluster)} if is_mixture(kpod) else {}),
                "observed": dict(zip(c.names, map(int, c.counts[cluster]), strict=True)),
            }
            for cluster in range(c.k)
        ],
        "unassigned": int((c.labels < 0).sum()),
        "cautions": [summary_of_caution(caution) for caution in analysis.cautions],
        "notes": [note.to_dict() for note in analysis.notes],
    }


def typical_rows(analysis: Analysis, cluster: int) -> dict[str, Any]:
    """The rows nearest to a center, by number and, where they have names, by name."""
    rows, names = analysis._clustering.typical(cluster), analysis.row_names
    named = {} if names is None else {"typical_names": [str(names[i]) for i in rows]}
    return {"typical": [i + 1 for i in rows], **named}


def spread_of(c: Clustering, cluster: int) -> dict[str, Any]:
    """One standard deviation below and above the center of a cluster, for each column."""
    ends = mixture_spread.spreads(c)[:, cluster].T
    return {name: [finite(low), finite(high)] for name, (low, high) in zip(c.names, ends, strict=True)}


def summary_of_fit(c: Clustering) -> dict[str, Any]:
    """How the fit went: the loss, or the likelihood of a mixture and its shape."""
    model = c.kpod
    if is_mixture(model):
        return {
            "log_likelihood": float(model.lower_bound_),
            "iterations": int(model.n_iter_),
            "converged": c.converged,
            "shape": {
                "covariance_type": model.covariance_type_,
                "factors": model.n_factors_,
                "sentences": [
                    mixture_spread.shape_sentence(model),
                    *filter(None, [mixture_spread.uninformative_sentence(c)]),
                    *mixture_spread.correlation_sentences(c),
                ],
                "uninformative_columns": [c.label(j) for j in mixture_spread.uninformative_columns(c)],
                "unexpected_values": [
                    {"row": cell.row + 1, "column": c.label(cell.column), "value": finite(cell.value)}
                    for cell in mixture_spread.outlier_cells_of(c)
                ],
            },
        }
    return {
        "loss": float(model.inertia_),
        "iterations": len(model.loss_curve_),
        "converged": c.converged,
        "starts": summary_of_starts(c),
    }


def settings_of(analysis: Analysis) -> dict[str, Any]:
    kpod, first = analysis._clustering.kpod, analysis.model[0]
    preparer: TablePreparer | None = first if hasattr(first, "roles_") else None
    scale = preparer.scale if preparer is not None else "standard" if len(analysis.model) > 1 else "none"
    logs = [] if preparer is None else preparer._encoding.logs
    categories = list(analysis._usage.categories)
    how = (
        {"algorithm": "EM", "shape": str(kpod._shape())}
        if is_mixture(kpod)
        else {"algorithm": kpod.algorithm}
    )
    return {
        "clusters": kpod.n_clusters_,
        **how,
        "starts": kpod.n_init,
        "seed": kpod.random_state if isinstance(kpod.random_state, int) else None,
        "scaled": scale != "none",
        **({"scale": "median and interquartile range"} if scale == "robust" else {}),
        **({"categories": categories} if categories else {}),
        **({"log": logs} if logs else {}),
        **({"clip": preparer.clip} if preparer is not None and preparer.clip else {}),
        **({"shrinkage": kpod.shrinkage_} if getattr(kpod, "shrinkage_", 0) else {}),
        **({"missingness": kpod.missingness} if kpod.missingness != "ignore" else {}),
    }


def summary_of_caution(caution: Note) -> dict[str, Any]:
    return {"title": title(caution), **caution.to_dict()}


def summary_of_starts(c: Clustering) -> dict[str, Any]:
    """How many starts, and how many of them found the best loss."""
    losses = [float(loss) for loss in c.kpod.losses_]
    return {"starts": len(losses), "found_best": best_found(losses), "sentence": starts_of(c)}


def summary_of_stability(again: Stability) -> dict[str, Any]:
    return {
        "jaccard": [finite(value) for value in again.jaccard_],
        "adjusted_rand_index": again.ari_,
        "sentence": again.sentence_,
    }


def summary_of_choice(
    choice: KChoice, again: Stability | None = None, verdict: Verdict | None = None
) -> dict[str, Any]:
    """Why this number of clusters."""
    table = choice.table_
    return {
        "clusters": choice.best_k_,
        "clear": choice.clear_,
        "reason": choice.reason_,
        "sentence": why_this_number(choice, again),
        "why": why(choice, is_confirmed=verdict is None or verdict.groups != "unclear"),
        "hidden_entries": choice.n_hidden_,
        "gaps_predicted": choice.gaps_,
        "correlated": choice.correlated_,
        "rows": choice.n_rows_,
        "tried": [
            {
                "clusters": int(k),
                **{name: finite(values[i]) for name, values in table.items() if name != "k"},
            }
            for i, k in enumerate(table["k"])
        ],
    }
