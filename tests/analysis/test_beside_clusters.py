"""What is said beside the clusters: an outcome, the rule, other numbers of clusters, and what has changed."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import kpod
from kpod._analysis.other_numbers_of_clusters import compared
from kpod._common.errors import InputError
from kpod._findings.assignment_rule import plain_between, smallest_tree
from kpod._findings.outcome_comparison import outcome_of
from kpod._findings.unused_column_profiles import UnusedColumn
from tests.analysis.test_verdict import three_groups
from tests.helpers.command import kpod as command


def groups(n=60, seed=0, names=True):
    """Three groups in two columns, of people."""
    rng = np.random.default_rng(seed)
    centers = np.repeat([[20.0, 1.0], [40.0, 1.0], [40.0, 9.0]], [n, n - 10, n - 20], axis=0)
    table = pd.DataFrame(centers + rng.normal(size=centers.shape), columns=["age", "visits"]).round(3)
    return (
        table.assign(name=[f"Person {chr(65 + i % 26)}{chr(65 + i // 26)}" for i in range(len(table))])
        if names
        else table
    )


@pytest.fixture(scope="module")
def analysis():
    table = groups()
    truth = np.repeat([0, 1, 2], [60, 50, 40])
    rng = np.random.default_rng(1)
    table["churned"] = np.where(rng.random(150) < np.array([0.1, 0.5, 0.5])[truth], "yes", "no")
    return kpod.analyze(table, 3, outcome="churned")


def test_an_outcome_is_compared_and_not_clustered(analysis):
    found = analysis.outcome
    assert analysis.to_dict()["columns"] == ["age", "visits"]
    frame = analysis.frame
    shares = (frame["churned"] == "yes").groupby(frame["cluster"]).agg(["sum", "size"])
    for one in found.clusters:
        n_yes, n = shares.loc[one.cluster]
        expected = stats.binomtest(int(n_yes), int(n)).proportion_ci(method="wilson")
        np.testing.assert_allclose((one.value, one.low, one.high), (n_yes / n, expected.low, expected.high))
    assert "differ by" in found.sentence_
    assert found.sentence_ in str(analysis)
    assert analysis.to_dict()["outcome"]["sentence"] == found.sentence_
    page = analysis.report().html
    assert "The outcome: churned" in page


def test_intervals_of_means_are_those_of_student():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 30)
    values = rng.normal(labels * 2.0)
    found = outcome_of(UnusedColumn("pay", values), labels, 2)
    for m in range(2):
        own = values[labels == m]
        interval = stats.t.interval(0.95, 29, own.mean(), stats.sem(own))
        np.testing.assert_allclose((found.clusters[m].low, found.clusters[m].high), interval)
    welch = stats.ttest_ind(values[labels == 1], values[labels == 0], equal_var=False).confidence_interval()
    np.testing.assert_allclose(found.difference[1:], (welch.low, welch.high))


def test_an_outcome_without_a_difference_is_said_to_have_none():
    """Of outcomes drawn at random, hardly one in twenty differs, however many clusters are compared."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), 40)
    told = [outcome_of(UnusedColumn("y", rng.random(200) < 0.4), labels, 5) for _ in range(100)]
    assert sum("no clear difference" not in one.sentence_ for one in told) <= 10


def test_weights_equal_repetition_in_shares():
    labels, values = np.repeat([0, 1], 20), np.tile([0.0, 1.0, 1.0, 0.0], 10)
    twice = outcome_of(UnusedColumn("y", values), labels, 2, np.full(40, 2.0))
    once = outcome_of(UnusedColumn("y", values), labels, 2)
    assert twice.clusters == once.clusters  # weights say how much, not how many


def test_rows_without_weight_do_not_count_in_outcomes():
    """Neither their values nor they themselves are counted."""
    rng = np.random.default_rng(0)
    labels, values = np.arange(60) % 2, (rng.random(60) < 0.4).astype(float)
    weights = (np.arange(60) < 40).astype(float)
    with_all = outcome_of(UnusedColumn("paid", values), labels, 2, weights)
    without = outcome_of(UnusedColumn("paid", values[:40]), labels[:40], 2)
    assert [vars(one) for one in with_all.clusters] == [vars(one) for one in without.clusters]


def test_a_rule_has_no_splits_that_are_not_worth_it():
    """A few rows near the border would take splits that hardly any other row needs."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2000, 2))
    labels = (values[:, 0] > 0).astype(np.int32)
    labels[(values[:, 0] > 0) & (values[:, 0] < 0.01)] = 0
    labels[(np.abs(values[:, 1]) < 0.004)] ^= 1
    tree, accuracy = smallest_tree(values, labels, 2)
    assert tree.get_n_leaves() == 2
    assert accuracy > 0.98


@pytest.mark.parametrize("column", ["name", "no such"])
def test_an_outcome_that_cannot_be_compared_is_refused(column):
    with pytest.raises(InputError, match=r"cannot be compared|there is no column"):
        _ = kpod.analyze(groups(), 2, outcome=column, verdict=False).to_dict()


def test_the_rule_assigns_rows_as_it_says(analysis):
    rule, frame = analysis.rule, analysis.frame
    given = np.full(len(frame), -1)
    for leaf in rule.leaves:
        rows = np.ones(len(frame), bool)
        for one in leaf.conditions:
            rows &= (frame[one.column] < one.value) == one.below
        assert (rows.sum(), (frame["cluster"][rows] == leaf.cluster).sum()) == (leaf.n_rows, leaf.n_right)
        assert (given[rows] == -1).all()
        given[rows] = leaf.cluster
    assert (given >= 0).all()
    assert (given == analysis.labels).mean() >= rule.accuracy > 0.95
    assert len(rule.leaves) == 3
    assert "Rule: cluster 0 if age below" in str(analysis)
    assert rule.baseline == pytest.approx(np.bincount(analysis.labels).max() / len(frame))


def test_the_rule_says_where_gaps_go():
    table = groups(names=False)
    table.loc[::7, "visits"] = np.nan
    analysis = kpod.analyze(table, 3, shape="round")
    frame = analysis.frame
    for leaf in analysis.rule.leaves:
        rows = np.ones(len(frame), bool)
        for one in leaf.conditions:
            column = frame[one.column]
            inside = not one.or_missing if one.by_gap else (column < one.value) == one.below
            rows &= np.where(column.isna(), one.or_missing, inside)
        assert rows.sum() == leaf.n_rows
    assert "visits is missing" in " ".join(analysis.to_dict()["rule"]["lines"])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(3, 4, 4), (3.2, 3.9, 3.5), (119, 1280, 1000), (-2.5, -1.5, -2), (0.11, 0.12, 0.115)],
)
def test_a_line_is_drawn_with_few_digits(low, high, expected):
    assert plain_between(low, high) == pytest.approx(expected)
    assert low < plain_between(low, high) <= high


def test_one_cluster_more_or_less(analysis):
    less, more = analysis.other_numbers
    assert (less.n_clusters, more.n_clusters) == (2, 4)
    assert len(less.merged) == 2
    assert re.match(r"with 2 clusters, \d and \d become one", less.sentence_)
    if more.split is not None:
        size = (analysis.labels == more.split).sum()
        assert 0.8 * size <= sum(more.into) <= size


def test_a_cluster_that_is_not_in_the_sample():
    ours = np.repeat([0, 1], 10)
    found = compared(ours, np.repeat([0, 1, 2], [10, 5, 5]), 3, 4)  # of three clusters, one is not there
    assert (found.n_clusters, found.merged, found.split) == (4, (), None)
    assert compared(ours, ours, 3, 2).merged == ()


def test_a_sample_is_split_and_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    centers = np.repeat([[0.0, 0, 0], [9, 9, 0], [9, 9, 4], [90, 90, 90]], [100, 60, 60, 1], axis=0)
    table = pd.DataFrame(centers + rng.normal(size=centers.shape), columns=["a", "b", "c"])
    done = kpod.analyze(table, n_clusters=3, scale="none", shape="round", random_state=0, verdict=False)
    monkeypatch.setattr("kpod._analysis.other_numbers_of_clusters.MOST_ROWS", 80)
    less, more = done.other_numbers
    assert less.n_sampled == more.n_sampled == 80
    (split,) = (other for other in (less, more) if other.split is not None)
    assert split.sentence_.endswith("of the 80 rows in a sample")
    assert 0.8 * 80 * 120 / 221 - 10 < sum(split.into) < 80


def test_rows_are_called_by_name(analysis):
    summary = analysis.to_dict()
    for cluster in summary["clusters"]:
        assert cluster["typical_names"] == [analysis.frame["name"][row - 1] for row in cluster["typical"]]
    assert "such as Person" in str(analysis)


def test_rows_of_a_panel_are_called_by_individual_and_time():
    rng = np.random.default_rng(0)
    country, year = np.divmod(np.arange(30 * 8), 8)
    table = pd.DataFrame({"country": [f"land {chr(65 + c)}" for c in country], "year": 2000 + year})
    table["gdp"], table["births"] = rng.normal(country % 3 * 9), rng.normal(country % 2 * 9)
    names = kpod.analyze(table, 2, verdict=False).row_names
    assert names[9] == f"{table['country'][9]} ({table['year'][9]})"


def test_clusters_alike_are_told_from_their_neighbours():
    """Two clusters are high in the same columns: what tells them apart is said."""
    rng = np.random.default_rng(0)
    x = np.concatenate([np.zeros(80), np.full(40, 10.0), np.full(40, 16.0)])
    table = pd.DataFrame({"a": x + rng.normal(size=160), "b": x + rng.normal(size=160)})
    said = [cluster["sentence"] for cluster in kpod.analyze(table, 3, verdict=False).to_dict()["clusters"]]
    assert len({text.partition("rows, ")[2] for text in said}) == 3
    assert any("unlike cluster" in text for text in said)


# What has changed


def test_the_table_of_the_fit_has_not_changed(analysis, tmp_path):
    found = kpod.compare(analysis, groups())
    assert found.agreement == 1
    assert not found.shifts
    assert not found.missing
    assert [one.share for one in found.clusters] == [one.share_before for one in found.clusters]
    assert "hold in this table" in found.sentence_
    analysis.save(tmp_path / "m.kpod")
    groups().to_csv(tmp_path / "new.csv", index=False)
    assert kpod.compare(tmp_path / "m.kpod", tmp_path / "new.csv").to_dict() == found.to_dict()


def test_what_has_moved_is_named(analysis):
    table = groups()
    old = table["age"] > 30
    moved = table.assign(
        visits=table["visits"] + 2.0 * (table["visits"] > 5), age=table["age"].mask(table.index % 3 == 0)
    )
    found = kpod.compare(analysis, moved[old | (table.index < 10)])
    assert {shift.column for shift in found.shifts} == {"visits"}
    assert [name for name, *_ in found.missing] == ["age"]
    assert any(one.changed for one in found.clusters)
    for one in found.clusters:
        assert one.share_before == pytest.approx((analysis.labels == one.cluster).mean())
    shift = found.shifts[0]
    assert float(shift.now) == pytest.approx(float(shift.before) + 2, abs=0.06)


def test_groups_that_are_gone_are_said_to_be_gone(analysis):
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"age": rng.uniform(15, 45, 200), "visits": rng.uniform(-2, 12, 200)})
    found = kpod.compare(analysis, noise)
    assert found.agreement < 0.8
    assert "are not found again in this table" in found.sentence_


def test_compare_on_the_command_line(monkeypatch, tmp_path, analysis):
    analysis.save(tmp_path / "m.kpod")
    groups().to_csv(tmp_path / "new.csv", index=False)
    done = command(monkeypatch, "compare", tmp_path / "m.kpod", tmp_path / "new.csv")
    assert done.code == 0
    assert done.out.splitlines()[0].startswith("The clusters of the model hold in this table")
    parsed = json.loads(
        command(monkeypatch, "compare", tmp_path / "m.kpod", tmp_path / "new.csv", "--json").out
    )
    assert parsed == json.loads(json.dumps(kpod.compare(tmp_path / "m.kpod", groups()).to_dict()))


def test_a_comparison_has_a_report(monkeypatch, tmp_path, analysis):
    """What is printed is on the page, with every mean that has moved; names of columns end nothing."""
    table = groups().rename(columns={"age": "</script><b>age"})
    before = kpod.analyze(table, 3, verdict=False)
    before.save(tmp_path / "before.kpod")
    now = table.assign(**{table.columns[0]: table.iloc[:, 0] + 5}).iloc[:120]
    now.to_csv(tmp_path / "now.csv", index=False)
    page = tmp_path / "changes.html"
    done = command(monkeypatch, "compare", tmp_path / "before.kpod", tmp_path / "now.csv", "--report", page)
    assert done.code == 0
    assert f"wrote {page}" in done.out
    written = page.read_text()
    report = kpod.compare(tmp_path / "before.kpod", tmp_path / "now.csv").report()
    assert done.out.splitlines()[0] in written
    assert re.search("<title>(.*?)</title>", written)[1].startswith("What has changed in ")
    for words in ("now.csv", "before.kpod", "&lt;/script&gt;&lt;b&gt;age"):
        assert words in written.replace("<wbr>", "")
    rows = re.findall(r"<tr>(<td data-value.*?)</tr>", written)
    cells = [
        [html.unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall("<td.*?</td>", row)]
        for row in rows
    ]
    assert [cell[:4] for cell in cells] == [
        [one.column, str(one.cluster), one.before, one.now] for one in report.comparison.shifts
    ]
    assert {cell[0] for cell in cells} == {table.columns[0]}
    changed = re.findall(r'<tr class="changed"><td>cluster (\d+)', written)
    assert [int(m) for m in changed] == [one.cluster for one in report.comparison.clusters if one.changed]
    assert changed
    assert "iframe" in report._repr_html_()
    again = ("compare", tmp_path / "before.kpod", tmp_path / "now.csv")
    refused = command(monkeypatch, *again, "--report", "x.pdf")
    assert refused.code == 1
    assert "HTML" in refused.err


def test_compare_wants_a_model_that_takes_raw_tables():
    with pytest.raises(TypeError, match="TablePreparer"):
        kpod.compare(kpod.KPOD(2).fit(groups(names=False)), groups())


# What is printed


def test_a_plain_fit_is_fifteen_lines_and_says_nothing_twice(monkeypatch, tmp_path):
    three_groups().to_csv(tmp_path / "t.csv", index=False)
    done = command(monkeypatch, "fit", tmp_path / "t.csv", "-k", "1-4", "-o", tmp_path / "out.csv")
    lines = done.err.splitlines()
    assert len(lines) <= 15
    assert len(set(lines)) == len(lines)
    used = next(i for i, line in enumerate(lines) if line.startswith("used: x0, x1, x2 and x3"))
    verdict = next(i for i, line in enumerate(lines) if line.startswith("3 separate groups"))
    assert used < verdict
    assert sum("3 groups" in line or "3 clusters" in line for line in lines) <= 2
    assert "loss" not in done.err


def test_columns_and_rows_are_introduced_before_the_fit():
    """By the callback, before the first step of the fit; notes on rows come first."""
    table = pd.concat([groups(), groups()]).assign(half="50%")
    table["half"] = np.where(np.arange(len(table)) % 2, "50%", "70%")
    seen = []

    class Watch:
        def __call__(self, done, total, text):
            seen.append(text)

        def introduce(self, summary):
            seen.append(summary)

    analysis = kpod.analyze(table, 2, verdict=False, progress=Watch())
    at, summary = next((i, one) for i, one in enumerate(seen) if isinstance(one, dict))
    assert summary["columns"] == analysis.to_dict()["columns"]
    assert summary["missing"] == analysis.to_dict()["missing"]
    assert "clustering" in seen[:at]
    kinds = [note["kind"] for note in summary["notes"]]
    assert kinds.index("duplicate rows") < kinds.index("number format")


def test_many_notes_are_shortened():
    from kpod._analysis.text import note_lines

    lesser = [{"kind": "number format", "text": str(i)} for i in range(9)]
    lines = note_lines([*lesser, {"kind": "aggregate rows", "text": "sums"}])
    assert lines[0] == "note: sums"
    assert len(lines) == 6
    assert lines[-1].startswith("... and 5 more notes")
    assert len(note_lines(lesser[:5])) == 5
