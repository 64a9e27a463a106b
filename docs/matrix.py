"""Every question in every place: each cell is run, and compared with the answer for the same table in memory.

python -m docs.matrix            runs all cells and writes docs/matrix.md (`make matrix`)
"""

import csv
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import kpod
from kpod import KPOD, GaussianMixture, MiniBatchKPOD, metrics

PAGE = Path(__file__).parent / "matrix.md"
NAMES = ["height", "depth", "speed", "mass"]
DECIMALS = 6


def table():
    rng = np.random.default_rng(0)
    group = rng.choice(3, 360, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(360, 4)) + 9 * np.array([[0, 0, 0, 0], [1, 1, 0, 1], [0, 1, 1, -1]])[group]
    gaps = rng.random(X.shape) < 0.2
    gaps[gaps.all(axis=1), 0] = False
    X[gaps] = np.nan
    return X.round(DECIMALS)


X = table()
WEIGHTS = 1 + 2 * np.isnan(X[:, 0])
MEMORY = KPOD(3, random_state=0, probability=True).fit(X)


# Places: a table as its users have it.


def frame():
    import pandas as pd

    return pd.DataFrame(X, columns=NAMES)


def polars_frame():
    import polars as pl

    return pl.DataFrame(X, schema=NAMES).fill_nan(None)


def csr():
    from scipy import sparse

    observed = ~np.isnan(X)
    return sparse.coo_array((X[observed], np.nonzero(observed)), X.shape).tocsr()


def mapped(folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


def parquet(folder):
    path = folder / "parts"
    path.mkdir(exist_ok=True)
    for i, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        polars_frame()[part.tolist()].write_parquet(path / f"{i}.parquet")
    return path


def dataset(folder):
    import pyarrow.dataset as ds

    return ds.dataset(parquet(folder))


def lazy_frame(folder):
    import polars as pl

    return pl.scan_parquet(parquet(folder))


def dask_array():
    import dask.array as da

    return da.from_array(X, chunks=(120, 4))


def dask_frame():
    import dask.dataframe as dd

    return dd.from_pandas(frame(), npartitions=3)


def spark_frame(folder):
    from tests.helpers.spark import spark_session

    return spark_session().read.parquet(str(parquet(folder))).select(*NAMES)


PLACES = {
    "array": lambda _: X,
    "pandas": lambda _: frame(),
    "polars": lambda _: polars_frame(),
    "CSR": lambda _: csr(),
    "memory map": mapped,
    "scan": lambda folder: kpod.scan(parquet(folder)),
    "dataset": dataset,
    "LazyFrame": lazy_frame,
    "Dask array": lambda _: dask_array(),
    "Dask DataFrame": lambda _: dask_frame(),
    "Spark DataFrame": spark_frame,
}
SPREAD = ("Dask array", "Dask DataFrame", "Spark DataFrame")


# Questions: what comes back is compared with the answer for the array.


def is_lazy(found):
    return hasattr(found, "__dask_graph__") or hasattr(found, "sparkSession")


def values(found):
    """A result as an array, in the order of the rows."""
    if hasattr(found, "sparkSession"):
        new = [name for name in found.columns if name not in NAMES] or NAMES
        rows = {tuple(row[:4]): row for row in ((*row,) for row in found.select(*NAMES, *new).collect())}
        keys = [tuple(None if np.isnan(x) else float(x) for x in row) for row in X]
        if new == NAMES:  # filled in: found by nothing but their order
            return np.sort(np.array([row[4:] for row in rows.values()], float), axis=0)
        return np.array([rows[key][4:] for key in keys], float).squeeze()
    found = found.compute() if hasattr(found, "compute") else found
    return np.asarray(found, float).squeeze()


def fitted(place, **parameters):
    return KPOD(**{"n_clusters": 3, "random_state": 0, **parameters}).fit(place)


def centers(model):
    return np.asarray(model.cluster_centers_, float)


def weights(place):
    spread, model = is_lazy(place), KPOD(3, random_state=0)
    if not spread or not hasattr(place, "columns"):
        return centers(model.fit(place, sample_weight=WEIGHTS))
    if hasattr(place, "sparkSession"):
        weighted = place.withColumn("w", 1 + 2 * place[NAMES[0]].isNull().cast("int"))
        return centers(model.fit(weighted, sample_weight="w"))
    import dask.dataframe as dd

    both = dd.from_pandas(frame().assign(w=WEIGHTS), npartitions=3)
    return centers(model.fit(both, sample_weight="w"))


def on_trained(method):
    """A method of a model of the same columns."""

    def ask(place):
        named = KPOD(3, random_state=0, probability=True).fit(frame() if has_names(place) else X)
        return getattr(named, method)(place)

    return ask


def has_names(place):
    return (
        hasattr(place, "collect_schema")
        or hasattr(place, "columns")
        or "Dataset" in type(place).__name__
        or hasattr(place, "header")
    )


def trained(place):
    return KPOD(3, random_state=0).fit(frame() if has_names(place) else X)


def checkpoint(place):
    with tempfile.TemporaryDirectory() as folder:
        return centers(fitted(place, checkpoint=folder))


QUESTIONS = {
    "fit": lambda place: centers(fitted(place)),
    "weights": weights,
    "informative": lambda place: centers(fitted(place, missingness="informative")),
    "k auto": lambda place: fitted(place, n_clusters="auto").n_clusters_,
    "missingness auto": lambda place: float(fitted(place, missingness="auto").missingness_ == "ignore"),
    "shrinkage auto": lambda place: fitted(place, shrinkage="auto", algorithm="lloyd").shrinkage_,
    "probability": lambda place: fitted(place, probability=True).cluster_shares_.round(3),
    "mixture": lambda place: np.sort(
        GaussianMixture(3, covariance_type="diag", n_init=1, random_state=0).fit(place).weights_
    ).round(3),
    "predict": on_trained("predict"),
    "predict_proba": on_trained("predict_proba"),
    "transform": on_trained("transform"),
    "impute": on_trained("impute"),
    "score": on_trained("score"),
    "stability": lambda place: kpod.stability(
        trained(place), place, n_resamples=5, random_state=0
    ).jaccard_.round(2),
    "report": lambda place: float("cluster" in kpod.report(trained(place), place).html),
    "summary": lambda place: kpod.summary(trained(place), place).between_ss_,
    "metrics": lambda place: metrics.silhouette_score(place, MEMORY.labels_),
    "checkpoint": checkpoint,
    "mini-batch": lambda place: np.bincount(MiniBatchKPOD(3, random_state=0).fit(place).labels_),
}
ON_SAMPLE = {
    "k auto",
    "missingness auto",
    "shrinkage auto",
    "probability",
    "mixture",
    "stability",
    "report",
    "summary",
}


# The command line takes files, standardises their columns and clusters them: what to type, and the column or
# file that answers.
COMMANDS = {
    "fit": "fit {data} -k 3 --no-verdict -o {out}",
    "weights": "fit {weighted} -k 3 --weight w --no-verdict -o {out}",
    "informative": "fit {data} -k 3 --missingness informative --no-verdict -o {out}",
    "k auto": "fit {data} -k auto --no-verdict -o {out}",
    "missingness auto": "fit {data} -k 3 --missingness auto --no-verdict -o {out}",
    "shrinkage auto": "fit {data} -k 3 --shrinkage auto --no-verdict -o {out}",
    "probability": "fit {data} -k 3 --confidence --no-verdict -o {out}",
    "mixture": "fit {data} -k 3 --shape diag --no-verdict -o {out}",
    "predict": "predict {model} {data} -o {out}",
    "impute": "impute {model} {data} -o {out}",
    "stability": "fit {data} -k 3 --stability --no-verdict -o {out}",
    "report": "fit {data} -k 3 --report {folder}/report.html --no-verdict -o {out}",
    "summary": "fit {data} -k 3 --no-verdict -o {out}",
    "checkpoint": "fit {data} -k 3 --checkpoint {folder}/kept --no-verdict -o {out}",
}
NOT_ON_THE_COMMAND_LINE = {
    "predict_proba": "--confidence gives the probability of the first and second cluster; for all of them, "
    "kpod.load(model).predict_proba(X)",
    "transform": "kpod.load(model).transform(X)",
    "score": "kpod.load(model).score(X)",
    "metrics": "kpod.metrics on the columns of the output",
    "mini-batch": "files larger than memory are read in pieces instead; MiniBatchKPOD in Python",
}


def typed(question, folder):
    """The cell of the command line: every command there is must give every row a cluster, or fill it."""
    if question not in COMMANDS:
        return "no", NOT_ON_THE_COMMAND_LINE[question]
    paths = {name: folder / f"{name}.csv" for name in ("data", "weighted", "out")} | {"folder": folder}
    paths["model"] = folder / "m.kpod"
    frame().to_csv(paths["data"], index=False)
    frame().assign(w=WEIGHTS).to_csv(paths["weighted"], index=False)
    KPOD(3, random_state=0).fit(frame())
    lines = ["fit {data} -k 3 -q --no-verdict --model {model} -o {out}", COMMANDS[question] + " -q"]
    for line in lines[question not in ("predict", "impute") :]:
        command = [sys.executable, "-m", "kpod", *shlex.split(line.format(**paths))]
        subprocess.run(command, check=True, capture_output=True)
    with paths["out"].open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(X)
    assert (
        all(row["cluster"] in "012" for row in rows) if question != "impute" else "" not in rows[0].values()
    )
    return "yes", ""


def rows_of(place, folder):
    """The rows in the order in which a place holds them: Spark reads the larger files first."""
    return PLACES[place](folder).toPandas().to_numpy() if place == "Spark DataFrame" else X


def cell(question, place, folder):
    """What a question gives in a place: yes, lazy, on a sample, or no with the reason."""
    if place == "command line":
        return typed(question, folder)
    expected = values(QUESTIONS[question](rows_of(place, folder) if question in ON_SAMPLE else X))
    try:
        found = QUESTIONS[question](PLACES[place](folder))
    except (TypeError, ValueError, AttributeError) as error:
        if not any(word in str(error) for word in REMEDIES):
            raise AssertionError(question, place) from error
        return "no", str(error)
    answer = values(found)
    if question == "impute" and hasattr(found, "sparkSession"):
        expected = np.sort(expected, axis=0)
    assert answer.shape == expected.shape, (question, place, answer.shape)
    assert np.allclose(answer, expected, rtol=1e-3, atol=1e-3), (question, place)
    sampled = place in SPREAD and question in ON_SAMPLE
    return "lazy" if is_lazy(found) else "sample" if sampled else "yes", ""


REMEDIES = ("Call ", "Pass ", "pass ", "Use ", "use ", "Look up", "Make ", "Load", "load", "need")


def run(questions=tuple(QUESTIONS), places=(*PLACES, "command line")):
    """All cells: (question, place) -> (word, reason)."""
    out = {}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as name:
        warnings.simplefilter("ignore")
        for question in questions:
            for place in places:
                folder = Path(name) / f"{len(out)}"
                folder.mkdir()
                out[question, place] = cell(question, place, folder)
                print(f"{question}, {place}: {out[question, place][0]}", file=sys.stderr)
    return out


def page(cells):
    """The matrix as Markdown, with the reasons below."""
    places = list(dict.fromkeys(place for _, place in cells))
    reasons = list(dict.fromkeys(reason for _, reason in cells.values() if reason))
    lines = [HEAD, "| | " + " | ".join(places) + " |", "|---" * (len(places) + 1) + "|"]
    for question in dict.fromkeys(question for question, _ in cells):
        row = [cells[question, place] for place in places]
        words = [f"no ({reasons.index(why) + 1})" if why else word for word, why in row]
        lines.append(f"| {question} | " + " | ".join(words) + " |")
    lines += ["", *(f"{i}. {reason}" for i, reason in enumerate(reasons, 1)), ""]
    return "\n".join(lines)


HEAD = """# Every question in every place

What works where. Every cell was run (`make matrix`) on the same small table, and the result compared with
that for the array. (Of a report, only its existence was checked; of a command, that every row has a cluster,
or that no gap is left.)

- **yes**: the same answer.
- **lazy**: a Dask collection, or a Spark DataFrame with additional columns, with the same values once it is
  computed.
- **sample**: computed on a sample of at most 50,000 rows, which is the same on any number of workers.
- **no**: refused, with what to do instead; the messages are below.
"""


def main():
    if shutil.which("java") is None:
        raise SystemExit("make matrix needs Java, for Spark.")
    cells = run()
    PAGE.write_text(page(cells))


if __name__ == "__main__":
    main()
