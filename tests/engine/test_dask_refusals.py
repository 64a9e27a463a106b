"""Every public function and method either works on a Dask table where its partitions are, or refuses it.

Partitions here say so when they are computed. They are found by going over all public names, so that one
that is new is looked at, too.
"""

import inspect

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kpod
from kpod import metrics, missingness, plot
from kpod._engine import sizes

pytest.importorskip("dask")
import dask.array as da
from dask.delayed import delayed

from tests.helpers.clusters import patient  # noqa: F401  # the fixture
from tests.helpers.tables import clustered

# What works in partitions: on the cluster of a client, or without one, as here, in this process.
WORKS = {
    "KPOD.fit",
    "KPOD.fit_predict",
    "KPOD.fit_transform",
    "KPOD.score",
    "MiniBatchKPOD.score",
    "ObservedScaler.fit",
    "ObservedScaler.fit_transform",
    "choose_k",
    # On a sample of the rows, which is drawn where they are.
    "GaussianMixture.fit",
    "GaussianMixture.fit_predict",
    "TablePreparer.fit",
    "TablePreparer.fit_transform",
    "report",
    "stability",
    "summary",
}
# Needs no table at all, or gives another collection, which nobody has computed yet.
IGNORES = {"LossDisplay.from_estimator", "KPOD.predict_proba", "ObservedScaler.transform"} | {
    f"{name}.{method}" for name in ("KPOD", "MiniBatchKPOD") for method in ("predict", "transform", "impute")
}
IGNORES |= {"TablePreparer.transform"}
IGNORES |= {f"GaussianMixture.{method}" for method in ("predict", "predict_proba", "impute")}


def loaded(*_):
    raise AssertionError("loaded!")


def dask_array():
    return da.concatenate([da.from_delayed(delayed(loaded)(), (100, 6), float) for _ in range(3)])


def dask_frame():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    meta = pd.DataFrame(np.zeros((0, 6)), columns=list("abcdef"))
    return dd.from_delayed([delayed(loaded)() for _ in range(3)], meta=meta, verify_meta=False)


def table():
    return clustered(np.random.default_rng(0), 300, 6, k=3)[0]


def public():
    """Name and callable of all that take a table, bound to what is fitted already."""
    X, pd = table(), pytest.importorskip("pandas")
    fitted = {
        "KPOD": kpod.KPOD(3, random_state=0).fit(X),
        "GaussianMixture": kpod.GaussianMixture(2, covariance_type="diag", n_init=1, random_state=0).fit(X),
        "MiniBatchKPOD": kpod.MiniBatchKPOD(3, random_state=0).fit(X),
        "ObservedScaler": kpod.ObservedScaler().fit(X),
        "TablePreparer": kpod.TablePreparer().fit(pd.DataFrame(X, columns=list("abcdef"))),
    }
    homes = [(kpod, kpod.__all__), *((module, module.__all__) for module in (metrics, missingness, plot))]
    for home, names in homes:
        for name in names:
            thing = getattr(home, name)
            if inspect.isclass(thing):
                owner = fitted.get(name, thing)
                for method in dir(owner):
                    if not method.startswith("_") and callable(getattr(owner, method, None)):
                        yield f"{name}.{method}", getattr(owner, method)
            elif inspect.isfunction(thing):
                yield name, thing
    yield "KPOD.predict_proba", kpod.KPOD(3, random_state=0, probability=True).fit(X).predict_proba


def arguments(function, X):
    """What to call it with; scikit-learn's scalers would load the table."""
    model = make_pipeline(StandardScaler(), kpod.KPOD(3, random_state=0)).fit(table())
    given = {
        "X": X, "model": model, "estimator": model, "labels": np.arange(300) % 3, "fraction": 0.2,
        "nuisance": np.arange(300) % 2, "groups": np.arange(300) % 2,
    }  # fmt: skip
    needed = inspect.signature(function).parameters.values()
    return {
        p.name: given[p.name] for p in needed if (p.default is p.empty or p.name == "X") and p.name in given
    }


def takes_a_table(function):
    try:
        return "X" in inspect.signature(function).parameters
    except ValueError:
        return False


@pytest.mark.filterwarnings("ignore:X has feature names", "ignore:X does not have valid feature names")
@pytest.mark.parametrize("make", [dask_array, dask_frame])
def test_nothing_loads_a_dask_table(make):
    seen = set()
    for name, function in public():
        if not takes_a_table(function):
            continue
        seen.add(name)
        try:
            function(**arguments(function, make()))
        except (TypeError, ValueError) as error:
            assert "Dask" in str(error), (name, error)
            assert name not in WORKS, error
        except AssertionError as error:
            assert name in WORKS, (name, error)
        else:
            assert name in IGNORES, name
    assert seen >= WORKS | IGNORES | {
        "report",
        "summary",
        "stability",
        "silhouette_score",
        "diagnose",
        "mcar",
    }
    assert seen >= {
        "ObservedScaler.fit_transform",
        "TablePreparer.inverse_transform",
        "RowsDisplay.from_estimator",
    }


def test_what_to_do_is_said():
    for make, line in {
        dask_array: r"X\[::100\]\.compute\(\)",
        dask_frame: r"X\.sample\(frac=0\.01\)",
    }.items():
        with pytest.raises(TypeError, match=rf"X is a Dask .*table in memory.*{line}"):
            missingness.diagnose(make())


def test_other_tables_are_refused_by_their_own_names():
    X = table()
    with pytest.raises(TypeError, match="init is a Dask array"):
        kpod.KPOD(3, init=dask_array()[:3]).fit(X)
    with pytest.raises(TypeError, match="profile is a Dask DataFrame"):
        kpod.report(kpod.KPOD(3, random_state=0).fit(X), X, profile=dask_frame())


def raw(n_rows=240):
    """A table with words, whose numbers have gaps."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n_rows)
    frame = pd.DataFrame({"size": rng.normal(size=n_rows) + 9 * group, "mass": rng.normal(size=n_rows)})
    frame.loc[::7, "mass"] = np.nan
    return frame.assign(wild=np.array(["yes", "no"])[rng.integers(2, size=n_rows)])


def test_a_preparer_learns_from_a_sample_and_works_in_partitions(monkeypatch):
    """It gives the clusters of the table in memory, and nothing is computed before it is asked for."""
    X = raw()
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.concat([dd.from_pandas(X, npartitions=3), dd.from_pandas(X[:0], npartitions=1)])
    here = kpod.TablePreparer().fit(X)
    there = kpod.TablePreparer().set_output(transform="pandas").fit(frame)
    assert str(there.roles_) == str(here.roles_)
    ready = there.transform(frame)
    assert list(ready.columns) == ["size", "mass", "wild"]
    np.testing.assert_array_equal(ready.compute(), here.transform(X))
    pipeline = make_pipeline(kpod.TablePreparer(), kpod.KPOD(3, random_state=0)).fit(frame)
    expected = kpod.KPOD(3, random_state=0).fit(here.transform(X)).labels_
    np.testing.assert_array_equal(pipeline.predict(frame).compute(), expected)
    with pytest.raises(ValueError, match="X lacks columns that the model was fitted on: 'mass'"):
        there.transform(frame[["size", "wild"]])
    monkeypatch.setattr(sizes, "SAMPLED_ROWS", 60)
    with pytest.warns(UserWarning, match="rests on a random sample of 60 of 240 rows"):
        there.fit(frame)
    assert (here.transform(X) != there.transform(X).to_numpy()).any()


@pytest.mark.parametrize("method", ["transform", "fit_transform"])
def test_set_output_does_not_load_a_collection(method):
    dd = pytest.importorskip("dask.dataframe")
    X = raw().drop(columns="wild")
    frame = dd.from_pandas(X, npartitions=3)
    for model in (kpod.ObservedScaler(), kpod.KPOD(3, random_state=0)):
        found = getattr(model.fit(frame).set_output(transform="pandas"), method)(frame)
        assert isinstance(found, dd.DataFrame)
        assert not isinstance(found, type(X))
        np.testing.assert_array_equal(found.compute(), model.transform(X))
