"""The verdict: what comes out under other choices, on tables whose truth is known."""

import html
import json
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import kpod
from kpod._analysis import verdict as module
from kpod._common.sentences.verdict_sentences import verdict_sentence, why
from kpod._report.specification_curve import SpecificationCurve
from tests.helpers.command import kpod as command


def three_groups(n=40, columns=4, seed=0):
    """Well apart in every column."""
    rng = np.random.default_rng(seed)
    centers = 6 * np.array([[0] * columns, [1] * columns, [1, -1] * (columns // 2)])
    return pd.DataFrame(
        np.repeat(centers, n, axis=0) + rng.normal(size=(3 * n, columns)),
        columns=[f"x{j}" for j in range(columns)],
    )


def tried(analysis):
    return {other.kind: other for other in analysis.verdict.others}


def test_separate_groups_are_the_same_under_every_other_choice():
    found = kpod.analyze(three_groups(), range(1, 5)).verdict
    assert found.groups == "separate"
    assert found.n_clusters == 3
    assert all(other.same for other in found.others)
    n = len(found.others)
    assert found.sentence_ == f"3 separate groups; the same under all {n} other choices."


def test_one_group_is_told_of():
    rng = np.random.default_rng(0)
    found = kpod.analyze(pd.DataFrame(rng.normal(size=(120, 4)), columns=list("abcd")), range(1, 4)).verdict
    assert found.groups == "one"
    assert found.sentence_.startswith("No separate groups: the rows are one group; the same under")


def test_pieces_of_a_line_are_no_groups():
    rng = np.random.default_rng(1)
    t = rng.uniform(0, 1, 300)
    table = pd.DataFrame({"x": np.cos(3 * t), "y": np.sin(3 * t), "z": t}) + rng.normal(0, 0.02, (300, 3))
    found = kpod.analyze(table, range(2, 5)).verdict
    assert found.groups in ("continuum", "unclear")


def test_clusters_made_by_a_few_rows_do_not_survive_without_them():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    table.iloc[:2] = 60.0
    analysis = kpod.analyze(table, 2)
    other = tried(analysis)["extreme rows"]
    assert not other.same
    assert other.text == "without the 2 most extreme rows"
    assert "without the 2 most extreme rows, rows are grouped differently" in analysis.verdict.sentence_


def test_clusters_made_by_one_column_do_not_survive_without_it():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 4)), columns=["a", "b", "c", "code"])
    table["code"] = 10 * rng.integers(0, 2, 200) + 0.1 * rng.normal(size=200)
    analysis = kpod.analyze(table, 2)
    other = tried(analysis)["column"]
    assert other.columns == ("code",)
    assert not other.same


def test_clusters_made_by_a_long_tail_do_not_survive_logarithms():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.lognormal(0, 1.3, (300, 3)), columns=list("abc"))
    other = tried(kpod.analyze(table, 2))["logarithms"]
    assert set(other.columns) == set("abc")
    assert not other.same
    log = kpod.analyze(table, 2, log=list("abc"))
    assert tried(log)["logarithms"].text == "without logarithms of a, b and c"


def test_other_choices_are_those_of_an_analysis_with_that_parameter():
    """Computed by another way: the whole analysis, with the parameter set."""
    rng = np.random.default_rng(3)
    table = three_groups(seed=3) + rng.normal(0, 3, (120, 4))
    table["colour"] = rng.choice(["red", "green", "blue"], 120)
    table = table.mask(rng.random(table.shape) < 0.05)
    analysis = kpod.analyze(table, 3, shape="round")
    found = tried(analysis)
    for kind, parameters in {
        "scale": {"scale": "robust"},
        "categories": {"categories": "all"},
        "seed": {"random_state": 1},
        "missingness": {"missingness": "auto"},
    }.items():
        again = kpod.analyze(table, 3, shape="round", verdict=False, **parameters)
        assert found[kind].agreement == adjusted_rand_score(analysis.labels, again.labels), kind
    without = kpod.analyze(table, 3, categories="all")
    assert tried(without)["categories"].text == "without the categories"
    assert tried(without)["categories"].agreement == adjusted_rand_score(without.labels, analysis.labels)


def test_the_number_of_a_mixture_is_chosen_again():
    """Two ridges: round clusters have a number of their own, and so has every other choice."""
    rng = np.random.default_rng(0)
    side, along = np.arange(300) % 2, 4 * rng.normal(size=300)
    ridges = np.column_stack([along, along + 3 * side, 2 * side]) + 0.4 * rng.normal(size=(300, 3))
    table = pd.DataFrame(ridges, columns=list("abc"))
    analysis = kpod.analyze(table, range(1, 5))
    assert (analysis.shape.reason_, analysis.n_clusters) == ("better", 2)
    again = kpod.analyze(table, range(1, 5), shape="round", verdict=False)
    assert tried(analysis)["shape"].n_clusters == again.n_clusters != 2
    robust = kpod.analyze(table, range(1, 5), scale="robust", verdict=False)
    assert tried(analysis)["scale"].n_clusters == robust.n_clusters
    assert [other.n_clusters for other in analysis.other_numbers] == [3]


def test_weights_count_under_other_choices():
    """A group that weighs nothing is no group, whatever is chosen otherwise."""
    table = three_groups()
    table["weight"] = [1] * 80 + [0] * 40
    found = kpod.analyze(table, range(1, 4), weight="weight").verdict
    assert found.n_clusters == 2
    assert all(other.n_clusters == 2 for other in found.others)


def test_of_large_tables_a_sample_is_tried(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 60)
    found = kpod.analyze(three_groups(), 3).verdict
    assert found.n_rows == 60
    assert "(on a sample of 60 rows)" in found.sentence_
    assert all(other.same for other in found.others)


def test_a_single_cluster_and_tiny_tables_have_a_verdict():
    table = three_groups(n=2, columns=2)
    for k in (1, 2, 6):
        found = kpod.analyze(table, k).verdict
        assert found.n_clusters == k
        assert found.sentence_.startswith(f"{k} cluster{'s' if k > 1 else ''}, as asked for; ")


def test_the_command_shows_what_python_has(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    three_groups().round(3).to_csv(path, index=False)
    found = kpod.analyze(path, 3)
    said = command(monkeypatch, "fit", path, "-k", 3, "--json", "-o", tmp_path / "out.csv")
    assert next(iter(json.loads(said.out))) == "verdict"
    assert json.loads(said.out)["verdict"] == json.loads(json.dumps(found.verdict.to_dict()))
    assert str(found).splitlines()[0] == found.verdict.sentence_
    assert "verdict" not in kpod.analyze(path, 3, verdict=False).to_dict()
    silent = command(monkeypatch, "fit", path, "-k", 3, "--json", "--no-verdict", "-o", tmp_path / "o.csv")
    assert "verdict" not in json.loads(silent.out)
    page = found.report().html
    assert found.verdict.sentence_ in page
    assert page.count("<td>yes</td>") == len(found.verdict.others)
    assert str(found.verdict).startswith(found.verdict.sentence_ + "\n  with ")


def test_a_table_in_pieces_has_the_verdict_of_one_in_memory(tmp_path):
    path = tmp_path / "t.csv"
    table = three_groups(seed=3) + np.random.default_rng(3).normal(0, 3, (120, 4))
    table["x3"] = np.exp(table["x3"] / 4)
    table = table.mask(np.random.default_rng(4).random(table.shape) < 0.05)
    table.to_csv(path, index=False)
    expected = kpod.analyze(path, 3).verdict
    with kpod.analyze(path, 3, scratch=tmp_path) as analysis:
        found = analysis.verdict
    assert analysis.to_dict()["in_pieces"]
    assert [(one.kind, one.text) for one in found.others] == [(one.kind, one.text) for one in expected.others]
    assert [one.agreement for one in found.others] == pytest.approx(
        [one.agreement for one in expected.others]
    )
    assert found.sentence_ == expected.sentence_


def test_of_a_table_in_pieces_a_sample_is_tried_and_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 60)
    path = tmp_path / "t.csv"
    three_groups().assign(colour="red", weight=[1, 2] * 60).to_csv(path, index=False)
    with kpod.analyze(path, 3, scratch=tmp_path, weight="weight") as analysis:
        assert analysis.verdict.n_rows == 60
        assert "(on a sample of 60 rows)" in str(analysis).splitlines()[0]
    assert all(other.same for other in analysis.verdict.others)
    assert "categories" not in tried(analysis)  # which cannot be used there


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0)])
def test_any_random_state_will_do(random_state):
    assert kpod.analyze(three_groups(), 3, random_state=random_state).verdict.others


def test_mixtures_keep_their_shape_under_other_choices():
    """Two long groups side by side, which round clusters cut across."""
    rng = np.random.default_rng(0)
    along = rng.normal(0, 6, 160)
    table = pd.DataFrame({"x": along, "y": along}) + rng.normal(0, 0.4, (160, 2))
    table["y"] += np.repeat([0, 6], 80)
    analysis = kpod.analyze(table, 2, shape="tied")
    found = tried(analysis)
    assert found["shape"].text == "with round clusters"
    assert not found["shape"].same
    assert all(other.same for kind, other in found.items() if kind != "shape")


def test_one_cluster_more_is_not_the_same_however_small(monkeypatch):
    analysis = kpod.analyze(three_groups(), 3, verdict=False)

    def one_row_apart(self, values, weights, spec):
        labels = self.labels[: len(values)].copy()
        labels[0] = 3
        return labels

    monkeypatch.setattr(module.Questions, "clustered", one_row_apart)
    for other in analysis.verdict.others:
        assert other.agreement > module.SAME or other.kind == "extreme rows"
        assert not other.same
    assert "there are 4" in analysis.verdict.sentence_


def test_categories_and_clipping_stay_under_other_choices():
    """Computed by another way: the whole analysis with robust scales."""
    rng = np.random.default_rng(5)
    table = three_groups(seed=5) + rng.normal(0, 3, (120, 4))
    table["colour"] = rng.choice(["red", "green", "blue"], 120)
    table["x3"] = np.exp(table["x3"] / 4)
    options = {"categories": "all", "clip": 0.1}
    analysis = kpod.analyze(table, 3, **options)
    again = kpod.analyze(table, 3, verdict=False, scale="robust", **options)
    assert tried(analysis)["scale"].agreement == adjusted_rand_score(analysis.labels, again.labels)


def test_the_report_draws_every_other_choice_and_marks_the_threshold():
    """Which are the same can be told without colour: by another marker, which the caption names."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 4)), columns=["a", "b", "c", "$code$ <b>"])
    table["$code$ <b>"] = 10 * rng.integers(0, 2, 200) + 0.1 * rng.normal(size=200)
    analysis = kpod.analyze(table, 2)
    page = analysis.report().html
    section = page[page.index('<section id="verdict">') :]
    picture = section[section.index("<svg") : section.index("</svg>")]
    assert {other.same for other in analysis.verdict.others} == {True, False}
    for other in analysis.verdict.others:
        assert html.escape(other.text, quote=False) in picture
    assert picture.count(">2 clusters<") == len(analysis.verdict.others)
    assert ">0.8<" in picture
    assert ">the same<" in picture
    assert ">not the same<" in picture
    assert "var(--paper)" in picture  # hollow in light and dark
    assert "#ffffff" not in picture


def test_the_curve_is_sorted_and_takes_negative_agreement():
    others = [
        {"text": text, "n_clusters": k, "agreement": agreement, "same": same}
        for text, k, agreement, same in [
            ("low", 3, -0.1, False), ("high", 3, 0.95, True), ("more", 4, 0.95, False)
        ]
    ]  # fmt: skip
    display = SpecificationCurve(others=others, n_clusters=3, threshold=0.8).plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["high", "more", "low"]
    top, bottom = display.ax_.get_ylim()[::-1]
    assert top < 0 < bottom  # the first is at the top
    assert display.ax_.get_xlim()[0] < -0.1
    marks = {points.get_label(): len(points.get_offsets()) for points in display.ax_.collections[-2:]}
    assert marks == {"the same": 1, "not the same": 2}


def test_no_curve_without_other_choices(monkeypatch):
    monkeypatch.setattr(module.Questions, "all", lambda _: iter(()))
    assert 'data-name="verdict"' not in kpod.analyze(three_groups(), 3).report().html


def panel(*, groups_in_time=False, seed=0):
    """Forty countries over eight years, with groups of countries, or of years."""
    rng = np.random.default_rng(seed)
    country, year = np.repeat(np.arange(40), 8), np.tile(np.arange(8), 40)
    group = year // 4 if groups_in_time else country // 20
    values = 4 * group[:, None] + rng.normal(size=(320, 3)) + 0.5 * rng.normal(size=(40, 3))[country]
    table = pd.DataFrame(values, columns=["health", "income", "schools"])
    return table.assign(country=[f"country {c}" for c in country], year=2000 + year)


def test_one_row_per_individual_is_tried_where_rows_repeat():
    """Computed by another way: the whole analysis of the combined rows."""
    table = panel()
    analysis = kpod.analyze(table, 2)
    other = tried(analysis)["individuals"]
    assert (other.text, other.columns) == ("with one row per country", ("country",))
    assert other.same
    again = kpod.analyze(table, 2, one_row_per="country")
    by_country = dict(zip(again.frame["country"], again.labels, strict=True))
    assert other.agreement == adjusted_rand_score(analysis.labels, table["country"].map(by_country))
    assert "individuals" not in tried(again)
    assert "individuals" not in tried(kpod.analyze(three_groups(), 3))


def test_groups_of_years_do_not_survive_one_row_per_country():
    other = tried(kpod.analyze(panel(groups_in_time=True), 2))["individuals"]
    assert not other.same
    assert other.agreement < 0.1


def test_individuals_of_a_sample_are_those_of_its_rows(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 60)
    found = kpod.analyze(panel(), 2).verdict
    assert found.n_rows == 60
    assert {other.kind: other for other in found.others}["individuals"].same


@pytest.mark.parametrize(
    ("groups", "same", "all_separate", "expected"),
    [
        ("separate", [True, True, False, False], True, "separate"),
        ("separate", [True, False, False], True, "unclear"),
        ("partly separate", [True, True, False], False, "partly separate"),
        ("partly separate", [True, True, False, False], False, "unclear"),
        ("unclear", [True, True, True], True, "separate"),
        ("unclear", [True, True, True], False, "unclear"),
        ("unclear", [True, True], True, "unclear"),
        ("unclear", [True, True, True, False], True, "unclear"),
        ("separate", [], True, "separate"),
    ],
)
def test_groups_are_confirmed_by_the_other_choices(groups, same, all_separate, expected):
    others = [module.OtherChoice("seed", "with another seed", (), 3, float(one), one) for one in same]
    assert module.confirmed(groups, others, all_separate=all_separate) == expected


def test_no_agreement_has_a_minus_before_zero():
    other = module.OtherChoice("seed", "with another seed", (), 3, -0.001, False)
    verdict = module.Verdict(verdict_sentence("given", 3, 0, [other], None), "given", 3, [other], 100)
    assert "(agreement 0.00)" in verdict.sentence_
    assert "-0.00" not in str(verdict)


def test_some_separate_groups_among_others_are_so_in_more_than_one_shape():
    same = [module.OtherChoice("seed", "with another seed", (), 4, 1.0, True)] * 3
    for agreement, expected in ((0.6, "unclear"), (0.9, "partly separate")):
        shape = module.OtherChoice("shape", "with round clusters", (), 4, agreement, agreement >= module.SAME)
        assert module.confirmed("partly separate", [*same, shape], all_separate=False) == expected


def test_groups_that_every_choice_finds_are_separate_though_their_number_was_not_clear():
    rng = np.random.default_rng((9700, 0))
    truth = np.repeat([0, 1, 2], [90, 45, 15])
    centers = rng.normal(size=(3, 5))
    apart = min(np.linalg.norm(centers[i] - centers[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    analysis = kpod.analyze(
        pd.DataFrame(centers[truth] * 6 / apart + rng.normal(size=(150, 5))).add_prefix("x")
    )
    assert not analysis.choice.clear_
    assert analysis.verdict.groups == "separate"
    assert adjusted_rand_score(truth, analysis.labels) > 0.95


def test_a_clear_number_that_other_choices_do_not_confirm_is_said_to_be_uncertain():
    choice = kpod.choose_k(three_groups(), range(1, 5), random_state=0)
    assert choice.clear_
    assert why(choice).startswith("Why: 3 clusters predict hidden values best")
    assert "other choices" not in why(choice)
    assert why(choice, is_confirmed=False).endswith(
        "but other choices give other clusters, so the number is not certain."
    )


def test_differences_are_set_apart_and_those_left_out_are_counted():
    """Numbers of clusters and numbers of choices are not to be taken for one another."""

    class Other(NamedTuple):
        text: str
        n_clusters: int
        same: bool = False
        agreement: float = 0.5

    others = [Other(f"with {name}", 5) for name in "abcd"]
    sentence = verdict_sentence("given", 2, 2, others, None)
    assert sentence == (
        "2 clusters, as asked for; the same under none of 4 other choices; with a, there are 5; "
        "with b, there are 5; 2 more differ."
    )
    assert verdict_sentence("given", 2, 2, others[:3], None).endswith("there are 5; 1 more differs.")
    assert verdict_sentence("given", 2, 2, others[:2], None).endswith("a, there are 5; with b, there are 5.")
