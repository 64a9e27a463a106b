"""What people and editors expect of every estimator: types of attributes, a link to its page."""

import inspect
import re
import typing

import numpy as np
import pytest
from sklearn.utils import estimator_html_repr

import kpod
from kpod import KPOD, MiniBatchKPOD, ObservedScaler
from kpod._estimators import documentation
from tests.helpers.tables import clustered

ESTIMATORS = [KPOD, MiniBatchKPOD, ObservedScaler]


def attributes_of(estimator):
    """The names in the section on attributes of a docstring."""
    section = inspect.getdoc(estimator).split("Attributes\n----------\n")[1].split("\n\n", 1)[0:2]
    text = re.split(r"\n\w[\w ]*\n-{3,}\n", "\n\n".join(section))[0]
    return re.findall(r"^(\w+_) :", text, re.MULTILINE)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_attributes_have_types(estimator):
    names = attributes_of(estimator)
    assert len(names) > 3
    hints = {}
    for base in reversed(estimator.__mro__):
        if base.__module__.startswith("kpod"):
            hints |= inspect.get_annotations(base)
    for name in names:
        annotation = hints.get(name) or inspect.signature(getattr(estimator, name).fget).return_annotation
        assert annotation not in (None, "Any", typing.Any), name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_diagrams_link_to_the_reference(estimator, monkeypatch):
    assert estimator()._get_doc_link() == ""  # which has no address yet, and scikit-learn's is not ours
    monkeypatch.setattr(documentation, "SITE", "https://kpod.example/")
    link = f"https://kpod.example/api/generated/kpod.{estimator.__name__}.html"
    assert estimator()._get_doc_link() == link
    assert link in estimator_html_repr(estimator())


def test_missingness_is_a_value_everywhere(rng):
    X, _ = clustered(rng, 60)
    for given in ("ignore", "auto"):
        model = KPOD(3, missingness=given, random_state=0).fit(X)
        assert model.missingness_ in ("ignore", "informative")
        assert hasattr(model, "missingness_decision_") == (given == "auto")
    assert str(model.missingness_decision_).startswith("gaps ")
    assert model.fit(np.nan_to_num(X)).missingness_ == "ignore"


def test_an_estimator_forgets_the_fit_before(rng):
    X, _ = clustered(rng, 60)
    model = KPOD(3, missingness="auto", probability=True, random_state=0).fit(X)
    model.set_params(missingness="ignore", probability=False).fit(X)
    assert not {"missingness_decision_", "mixture_centers_", "cluster_shares_"} & set(vars(model))
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.full((4, 2), np.inf))
    assert model.n_features_in_ == X.shape[1]  # a fit that fails changes nothing


def test_result_objects_say_it_in_one_attribute(rng):
    X, _ = clustered(rng, 60, k=2)
    model = KPOD(2, random_state=0).fit(X)
    for found in (
        kpod.choose_k(X, [1, 2], random_state=0),
        kpod.stability(model, X, n_resamples=2, random_state=0),
        kpod.missingness.diagnose(X),
    ):
        assert found.sentence_
        assert found.sentence_ in str(found)
