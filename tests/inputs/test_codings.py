"""The answer does not depend on how yes/no is written, and a category counts as one column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from kpod import KPOD, TablePreparer
from kpod._common.column_groups import Contrasts, groups_of_array
from kpod._engine import blocks
from kpod._engine.executors import Executor
from kpod._engine.objective import GapObjective
from kpod._engine.seeding import KMeansPlusPlus
from kpod._engine.table import Table, make_table, with_groups
from kpod._findings.fitted_clusters.clustering import Clustering
from kpod._model_selection import holdout
from kpod.missingness import diagnose
from tests.helpers.command import kpod as run
from tests.helpers.tables import as_csr_for_engine as as_csr

YES_NO = ("sex", "clutch")


def table(seed: int, n: int = 120) -> pd.DataFrame:
    """Three overlapping species with two yes/no columns, and gaps of which some go with the species."""
    rng = np.random.default_rng(seed)
    species = rng.integers(3, size=n)
    centers = 2.5 * rng.normal(size=(3, 4))
    names = ["bill", "depth", "flipper", "mass"]
    frame = pd.DataFrame(centers[species] + rng.normal(size=(n, 4)), columns=names)
    for name in YES_NO:
        frame[name] = (rng.random(n) < rng.uniform(0.2, 0.8, size=3)[species]).astype(float)
    rates = rng.uniform(0, 0.3, size=(3, 6))[species]
    return frame.mask(rng.random(frame.shape) < rates)


def as_text(values: pd.Series) -> pd.Series:
    return values.map({0.0: "no", 1.0: "yes"}).astype(object).where(values.notna(), None)


CODINGS = {
    "text": as_text,
    "bool": lambda values: values.astype("boolean"),
    "reversed": lambda values: 1 - values,
    "reversed text": lambda values: as_text(1 - values),
    "1/2": lambda values: 1 + values,
    "category": lambda values: as_text(values).astype("category"),
}


def coded(frame: pd.DataFrame, coding: str) -> pd.DataFrame:
    return frame.assign(**{name: CODINGS[coding](frame[name]) for name in YES_NO})


def both_indicators(frame: pd.DataFrame) -> np.ndarray:
    """The encoded table with yes and no as a column each, at the same distances."""
    z = TablePreparer(categories="all").fit_transform(frame)
    columns = [
        [z[:, j]] if name not in YES_NO else [z[:, j] / np.sqrt(2), 3 - z[:, j] / np.sqrt(2)]
        for j, name in enumerate(frame.columns)
    ]
    return np.column_stack([part for parts in columns for part in parts])


SETTINGS = pytest.mark.parametrize(
    "parameters",
    [
        {"n_clusters": 3},
        {"n_clusters": 3, "missingness": "informative"},
        {"n_clusters": 3, "missingness": "auto"},
        {"n_clusters": "auto"},
    ],
    ids=["fixed", "informative", "auto gaps", "auto k"],
)


def rows_for(parameters: dict[str, object]) -> int:
    """Fewer for what takes many fits."""
    return 60 if parameters["n_clusters"] == "auto" else 120


def same_answer(one: KPOD, other: KPOD, said: str) -> None:
    assert other.n_clusters_ == one.n_clusters_, said
    assert adjusted_rand_score(one.labels_, other.labels_) == 1, said
    assert other.objective_ == pytest.approx(one.objective_), said
    if hasattr(one, "choice_"):
        assert other.choice_.n_hidden_ == one.choice_.n_hidden_, said
        assert_allclose(other.choice_.table_["error"], one.choice_.table_["error"], rtol=0.01, err_msg=said)
    if hasattr(one, "missingness_decision_"):
        assert other.missingness_decision_.use == one.missingness_decision_.use, said
        assert other.missingness_decision_.change == pytest.approx(
            one.missingness_decision_.change, nan_ok=True
        ), said


@pytest.mark.filterwarnings("ignore::UserWarning")
@SETTINGS
@pytest.mark.parametrize("seed", [1, 2])
def test_the_answer_does_not_depend_on_how_yes_is_written(seed, parameters):
    def fitted(frame: pd.DataFrame) -> KPOD:
        return make_pipeline(TablePreparer(categories="all"), KPOD(random_state=0, **parameters)).fit(frame)[
            -1
        ]

    frame = table(seed, rows_for(parameters))
    plain = fitted(frame)
    for coding in CODINGS if parameters == {"n_clusters": 3} else ("text", "reversed"):
        same_answer(plain, fitted(coded(frame, coding)), coding)


@pytest.mark.filterwarnings("ignore::UserWarning")
@SETTINGS
@pytest.mark.parametrize("seed", [1, 2])
def test_both_indicators_of_yes_and_no_are_one_column(seed, parameters):
    frame = table(seed, rows_for(parameters))
    plain = KPOD(random_state=0, **parameters).fit(TablePreparer(categories="all").fit_transform(frame))
    both = KPOD(random_state=0, **parameters).fit(both_indicators(frame))
    assert_array_equal(both.column_groups_, [0, 1, 2, 3, 4, 4, 5, 5])
    same_answer(plain, both, "both indicators")
    if hasattr(plain, "choice_"):
        errors = (model.choice_.table_["correlated_error"] for model in (both, plain))
        assert_allclose(*errors, rtol=0.01)
    first = [0, 1, 2, 3, 4, 6]
    distances = plain.transform(TablePreparer(categories="all").fit_transform(frame))
    assert_allclose(both.transform(both_indicators(frame)), distances)
    if hasattr(plain, "missing_rates_"):
        assert_allclose(both.missing_rates_[:, first], plain.missing_rates_)
        assert_array_equal(both.missing_rates_[:, 4], both.missing_rates_[:, 5])
        assert_array_equal(both.predict(both_indicators(frame)), both.labels_)


@pytest.mark.parametrize("options", [{"scale": "robust"}, {"scale": "none"}, {"clip": 0.3}, {}])
def test_yes_is_encoded_alike_under_every_scale(options):
    frame = table(0)
    plain = TablePreparer(categories="all", **options).fit_transform(frame)
    for coding in ("text", "bool", "category"):
        assert_array_equal(
            TablePreparer(categories="all", **options).fit_transform(coded(frame, coding)), plain
        )
    assert_allclose(
        TablePreparer(categories="all", **options).fit_transform(coded(frame, "reversed"))[:, :4],
        plain[:, :4],
    )


def test_an_unseen_third_answer_is_a_gap_with_a_warning():
    encoder = TablePreparer(categories="all").fit(pd.DataFrame({"a": ["f", "m", "m", None] * 3}))
    with pytest.warns(
        UserWarning, match=r"'perhaps' \(2 rows\) is not among the categories .* taken as missing"
    ):
        encoded = encoder.transform(pd.DataFrame({"a": ["perhaps", "m", "perhaps", None]}))
    assert_array_equal(np.isnan(encoded).ravel(), [True, False, True, True])


def test_two_levels_come_back():
    frame = coded(table(0), "text")
    encoder = TablePreparer(categories=YES_NO).fit(frame)
    back = encoder.inverse_transform(encoder.transform(frame))
    for name in YES_NO:
        assert back[name].fillna("").tolist() == frame[name].fillna("").tolist()
    shares = encoder.shares(encoder.transform(frame))
    of_yes = shares["sex"][frame["sex"] == "yes"]
    assert_allclose(of_yes, np.tile([0, 1], (len(of_yes), 1)), atol=1e-12)
    assert list(encoder.get_feature_names_out()[-2:]) == ["sex=yes", "clutch=yes"]


# Categories of more levels, as numbers


def with_dummies(seed: int, n: int = 200) -> tuple[np.ndarray, list[int]]:
    """Measurements, yes/no columns and full sets of indicators on all kinds of scales, and their sources."""
    rng = np.random.default_rng(seed)
    columns, source = [], []
    for number, kind in enumerate(
        rng.permutation(["number", "number", "yes", "yes", "two", "three", "five"])
    ):
        levels = {"two": 2, "three": 3, "five": 5}.get(kind, 1)
        if kind == "number":
            part = rng.normal(size=(n, 1))
        elif kind == "yes":
            part = (rng.random((n, 1)) < 0.3).astype(float)
        else:
            codes = np.concatenate([np.arange(levels), rng.integers(levels, size=n - levels)])
            part = np.eye(levels)[codes] * rng.uniform(0.5, 2, size=levels) + rng.normal(size=levels)
        part[rng.random(n) < rng.choice([0, 0.1])] = np.nan
        columns.append(part)
        source += [number] * levels
    return np.ascontiguousarray(np.hstack(columns)), source


def grouped_table(X: np.ndarray | sparse.csr_array) -> Table:
    return with_groups(make_table(X, Executor()), Executor())


@pytest.mark.parametrize("seed", range(20))
def test_full_sets_of_indicators_are_recognised_and_nothing_else(seed, monkeypatch):
    X, source = with_dummies(seed)
    assert_array_equal(groups_of_array(X).source, source)
    monkeypatch.setattr(blocks, "ENTRIES_PER_BLOCK", 300)
    monkeypatch.setattr(blocks, "ENTRIES_AT_ONCE", 100)
    for values in (X, X.astype(np.float32), as_csr(X)):
        assert_array_equal(grouped_table(values).groups.source, source)


@pytest.mark.parametrize("spoil", ["two on", "none on", "a gap of its own", "a third value", "one dropped"])
def test_what_is_not_a_full_set_counts_one_by_one(spoil):
    X = np.eye(3)[np.arange(60) % 3]
    X[:5] = np.nan
    if spoil == "one dropped":
        X = X[:, :2]
    else:
        X[30] = {
            "two on": [1, 1, 0],
            "none on": [0, 0, 0],
            "a gap of its own": [np.nan, 0, 0],
            "a third value": [1, 0, 0.5],
        }[spoil]
    assert_array_equal(groups_of_array(X).source, np.arange(X.shape[1]))
    assert_array_equal(groups_of_array(np.eye(3)[np.arange(9) % 3]).source, [0, 1, 2])  # too few rows to tell


@pytest.mark.parametrize("seed", range(3))
def test_indicators_are_hidden_together_and_every_row_keeps_a_column(seed):
    X, source = with_dummies(seed)
    dense, of_csr = (holdout.folds(grouped_table(values), Executor(), 7) for values in (X, as_csr(X)))
    for fold, other in zip(dense, of_csr, strict=True):
        hidden = np.zeros(X.shape, bool)
        hidden[fold.rows, fold.columns] = True
        for number in range(source[-1] + 1):
            of_source = hidden[:, np.array(source) == number]
            assert (of_source.all(axis=1) == of_source.any(axis=1)).all()
        assert (~hidden & ~np.isnan(X)).any(axis=1).all()
        assert fold.n_hidden == len(set(zip(fold.rows, np.array(source)[fold.columns], strict=True)))
        assert_array_equal(fold.rows, other.rows)
        assert_array_equal(fold.columns, other.columns)


def test_a_category_has_one_gap_and_one_degree_of_freedom():
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=300)
    X = np.column_stack([rng.normal(size=(300, 2)), np.eye(4)[codes]])
    X[rng.random(300) < 0.3, 2:] = np.nan
    X[rng.random(300) < 0.2, 0] = np.nan
    objective = GapObjective(grouped_table(X), 2)
    seen = ~np.isnan(X[:, :3])
    assert objective.n_observed == seen.sum()
    assert objective.degrees == seen.sum() - 2 * 3
    informative = (objective.observed > 0) & (objective.observed < 1)
    assert_array_equal(informative, [True, False, True, False, False, False])
    assert objective.likelihood.n_informative == 2


def test_contrasts_keep_distances():
    X, _ = with_dummies(4)
    groups = groups_of_array(X)
    contrasts = Contrasts.of_table(X, groups)
    reduced = contrasts.values(X)
    assert reduced.shape[1] == X.shape[1] - 3
    complete = ~np.isnan(X).any(axis=1)
    before, after = X[complete], reduced[complete]
    assert_allclose(
        ((before[:, None] - before) ** 2).sum(axis=2), ((after[:, None] - after) ** 2).sum(axis=2), atol=1e-9
    )
    of_csr = contrasts.values(as_csr(X))
    assert_allclose(of_csr.toarray(), np.nan_to_num(reduced), atol=1e-12)
    assert of_csr.nnz == (~np.isnan(reduced)).sum()


@pytest.mark.filterwarnings("ignore::UserWarning")
@SETTINGS
def test_the_names_of_levels_do_not_matter(parameters):
    frame = table(3, rows_for(parameters))
    rng = np.random.default_rng(3)
    islands = rng.integers(4, size=len(frame))
    answers = []
    for names in ("abcd", "dbac"):
        island = np.array(list(names), dtype=object)[islands]
        island[::7] = None
        pipeline = make_pipeline(TablePreparer(categories="all"), KPOD(random_state=0, **parameters))
        answers.append(pipeline.fit(frame.assign(island=island))[-1])
    same_answer(*answers, "names")


def test_a_diagnosis_counts_a_category_once():
    frame = table(5)
    single = diagnose(frame)
    both = frame.drop(columns="sex").assign(yes=frame["sex"], no=1 - frame["sex"])
    of_both = diagnose(both[["bill", "depth", "flipper", "mass", "yes", "no", "clutch"]])
    assert of_both.names[4] == "yes"
    assert_allclose(of_both.missing, single.missing)
    assert of_both.little.p == pytest.approx(single.little.p)
    assert of_both.uneven_rows == pytest.approx(single.uneven_rows)
    dummies = np.eye(3)[np.arange(120) % 3]
    dummies[::5] = np.nan
    wide = diagnose(np.column_stack([frame.to_numpy(), dummies]))
    assert wide.names[-1] == "column 6 to column 8"
    assert not wide.little.reason


def test_reports_speak_of_both_levels(rng):
    n = 60
    frame = pd.DataFrame(
        {
            "x": np.concatenate([rng.normal(size=n), rng.normal(size=n) + 9]),
            "sex": ["female"] * n + ["male"] * n,
        }
    )
    model = make_pipeline(TablePreparer(categories="all"), KPOD(2, random_state=0)).fit(frame)
    clustering = Clustering.of(model, frame)
    said = " ".join(clustering.sentence(cluster) for cluster in range(2))
    assert "mostly sex male (100%, others 0%)" in said
    assert "mostly sex female (100%, others 0%)" in said
    assert clustering.source_names == ["x", "sex"]


# Gaps that are said to be informative


def scattered(seed: int) -> np.ndarray:
    """Gaps that have nothing to do with the groups, from none to nearly all of a column."""
    rng = np.random.default_rng(seed)
    X = 1.2 * rng.normal(size=(3, 8))[rng.integers(3, size=300)] + rng.normal(size=(300, 8))
    X[rng.random(X.shape) < np.linspace(0, 0.9, 8)] = np.nan
    return X


def test_informative_gaps_that_are_none_are_warned_of():
    X = scattered(0)
    with pytest.warns(UserWarning, match="do not differ in which entries are missing"):
        KPOD(3, missingness="informative", random_state=0).fit(X)


def test_informative_gaps_that_are_some_are_not(recwarn):
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=300)
    X = 2.5 * rng.normal(size=(3, 6))[group] + rng.normal(size=(300, 6))
    X[rng.random(X.shape) < rng.uniform(0, 0.6, size=(3, 6))[group]] = np.nan
    KPOD(3, missingness="informative", random_state=0).fit(X)
    assert not recwarn.list


def test_the_warning_points_at_the_line_of_the_caller():
    encoder = TablePreparer(categories="all").fit(pd.DataFrame({"a": ["f", "m", "m"] * 3}))
    with pytest.warns(UserWarning, match="taken as missing") as caught:
        encoder.transform(pd.DataFrame({"a": ["perhaps"]}))
    assert caught[0].filename == __file__


def test_on_the_command_line_a_third_answer_is_a_note_and_only_that(tmp_path, monkeypatch):
    frame = coded(table(1), "text").assign(bill=lambda f: f["bill"].fillna(0))
    data, model = tmp_path / "a.csv", tmp_path / "m.kpod"
    frame.to_csv(data, index=False)
    fitted = run(monkeypatch, "fit", data, "-k", 2, "--as", "sex=category", "--model", model)
    assert fitted.code == 0, fitted.err
    frame.assign(sex=frame["sex"].replace("yes", "perhaps")).to_csv(data, index=False)
    done = run(monkeypatch, "predict", model, data)  # in which warnings are errors
    assert done.code == 0, done.err
    assert "'perhaps'" in done.out + done.err
    assert "and taken as missing." in " ".join((done.out + done.err).split())


def test_two_rows_share_a_category_once_when_seeds_are_drawn():
    frame = table(4)
    single, both = (
        grouped_table(z)
        for z in (TablePreparer(categories="all").fit_transform(frame), both_indicators(frame))
    )
    seedings = [KMeansPlusPlus(of, Executor(), 8, np.random.default_rng(0)) for of in (single, both)]
    for seed in range(20):
        one, other = (
            seeding.table.units.back(seeding.draw(np.random.default_rng(seed)).centers)[:, :4]
            for seeding in seedings
        )
        assert_allclose(one, other, atol=1e-9)


def test_probabilities_count_a_category_once():
    frame = table(6)
    z, pairs = TablePreparer(categories="all").fit_transform(frame), both_indicators(frame)
    one, other = (KPOD(3, probability=True, random_state=0).fit(X) for X in (z, pairs))
    assert other.noise_variance_ == pytest.approx(one.noise_variance_, rel=1e-9)
    assert_allclose(other.predict_proba(pairs), one.predict_proba(z), atol=1e-9)
