"""What is said of a table is true of it: sentences are read back, and compared with the data."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from kpod import KPOD, analyze
from kpod._common.sentences.formatting import percent
from kpod.datasets import load_incomplete_wine
from kpod.missingness import diagnose
from tests.conftest import FIRST_SEED
from tests.helpers.command import kpod
from tests.helpers.tables import clustered

SINGULAR = r"(?<![\d.,])1 (rows|columns|clusters|starts|values|entries|iterations|notes)\b"
SHARE = r"([<>]?)(-?[\d.]+)%"


def is_share(sign, number, share, digits=0):
    """Whether 12%, <1% or >99% is a way to write a share."""
    value = float(number) / 100
    if sign:
        return 0 < share < value if sign == "<" else value < share < 1
    return abs(share - value) <= 0.5 * 10.0 ** -(digits + 2) + 1e-12


def fitted(monkeypatch, folder, table, *options):
    table.to_csv(folder / "t.csv", index=False)
    arguments = ["fit", folder / "t.csv", *options, "--json", "-o", folder / "out.csv"]
    result = kpod(monkeypatch, *arguments)
    assert result.code == 0, result.err
    summary = json.loads(result.out)
    return summary, pd.read_csv(folder / "out.csv")["cluster"].to_numpy()


def said_in(summary):
    yield from (cluster["sentence"] for cluster in summary["clusters"])
    yield from (caution["text"] for caution in summary["cautions"])
    yield from (note["text"] for note in summary["notes"])
    yield from summary.get("confidence", {}).get("sentences", ())
    parts = (summary.get("starts", {}), summary.get("stability", {}))
    yield from (part["sentence"] for part in parts if part)


# Each check is handed a sentence, the table and the clusters; it says whether it knew the sentence.


def check_cluster(text, table, labels, used):
    found = re.match(r"cluster (\d+): ([\d,]+) rows?, (.*)", text)
    if not found:
        return False
    own = labels == int(found[1])
    assert own.sum() == int(found[2].replace(",", ""))
    z = (table[used][own].mean() - table[used].mean()) / table[used].std(ddof=0)
    enough = table[used][own].notna().sum() >= 5
    for clause in re.findall(r"(?:high|low) in .*?(?=, (?:high|low|unlike|more|less) |$)", found[3]):
        sign = 1 if clause.startswith("high") else -1
        for name, value, others in re.findall(r"(\w+) \(([^ ,)]+|[\d,]+), others ([^;)]+)", clause):
            assert sign * z[name] >= 0.5 - 1e-9, text
            check_written(value, table[name][own].mean())
            check_written(others, table[name][~own & (labels >= 0)].mean())
    if "throughout" in text:
        assert enough.all()
        assert (z.abs() < 0.5).all()
    return True


UNITS = {"M": 1e6, "B": 1e9, "T": 1e12, "%": 0.01}


def check_written(text, value):
    """A number as it is written is the value, to the digits that are there."""
    unit = UNITS.get(text[-1], 1.0)
    digits = text.rstrip("MBT%").replace(",", "")
    decimals = len(digits.partition(".")[2])
    step = max(10.0**-decimals, 0.01 * abs(value) / unit)
    assert abs(float(digits) - value / unit) <= 0.51 * step, (text, value)


def check_dominated(text, table, labels, used):
    found = re.match(r"(A few extreme values make|One extreme value makes) up more than half of the", text)
    if not found:
        return False
    for name, n, total in re.findall(r"(\w+) \(([\d,]+) of ([\d,]+)\)", text):
        entries = table[name].dropna()
        squares = np.sort((entries - entries.mean()) ** 2)[::-1]
        assert int(total) == len(entries)
        assert squares[: int(n)].sum() > 0.5 * squares.sum() > squares[: int(n) - 1].sum()
        assert (int(n) == 1) == ("One" in text) or text.count(" of ") > 3
    return True


def check_followed(text, table, labels, used):
    found = re.match(rf"the clusters largely follow (\w+), .*?: {SHARE} .*? \({SHARE} have the one", text)
    if not found:
        return False
    name = found[1]
    both = pd.crosstab(labels, table[name])
    assert is_share(found[2], found[3], both.max(axis=1).sum() / both.to_numpy().sum())
    assert is_share(found[4], found[5], both.sum().max() / both.to_numpy().sum())
    assert float(found[3]) >= float(found[5]) + 9
    return True


def check_panel(text, table, labels, used):
    """Counts of groups are counts of groups."""
    rows = re.match(r"there are (about )?([\d,]+) rows for each (\w+), one after", text)
    runs = re.match(r"rows of the same (\w+) follow one another in time, in runs of (about )?([\d,]+)", text)
    if rows:
        sizes = table[rows[3]].value_counts()
        assert int(rows[2].replace(",", "")) == round(float(sizes.median()))
        assert bool(rows[1]) == (sizes.nunique() > 1)
    elif runs:
        changes = (table[runs[1]] != table[runs[1]].shift()).cumsum()
        assert int(runs[3]) == round(float(changes.value_counts().median()))
    elif not (match := re.match(r"there is one row for each (\w+) and (\w+)\.", text)):
        return False
    else:
        assert not table.duplicated([match[1], match[2]]).any()
    advised = re.search(
        r"as a whole \(([\d,]+) rows\), use (?:--one-row-per (\w+)|one_row_per='(\w+)')", text
    )
    if advised:
        assert int(advised[1].replace(",", "")) == table[advised[2] or advised[3]].nunique() >= 20
    return True


def check_twins(text, table, labels, used):
    found = re.findall(r"(\w+) is (?:equal to|([-.\de+]+) times) (\w+)", text)
    for other, slope, first in found:
        both = table[[first, other]].dropna()
        off = both[other] - float(slope or 1) * both[first]
        assert off.max() - off.min() <= 1e-3 * (both[other].max() - both[other].min())
    return bool(found)


def check_rows(text, table, labels, used):
    found = re.match(r"([\d,]+) rows? \(.*?\) (with nothing observed|ha[sv]e? at most a quarter)", text)
    if not found:
        return False
    observed = table[used].notna().sum(axis=1)
    few = (observed == 0) if "nothing" in found[2] else (observed > 0) & (observed <= len(used) / 4)
    assert int(found[1]) == few.sum()
    return True


CHECKS = (check_cluster, check_dominated, check_followed, check_panel, check_twins, check_rows)


def random_table(kind):
    rng = np.random.default_rng((FIRST_SEED, len(kind)))
    X, truth = clustered(rng, 150, 5, 3, 0.15, 0.4)
    table = pd.DataFrame(X, columns=list("abcde")).round(4)
    if kind == "rare type":  # nearly all rows are of one type, and a cluster holds the others
        table.loc[:1, list("abcde")] = 50
        return table.assign(type=np.where(np.arange(150) < 2, "rare", "usual"))
    if kind == "group":
        return table.assign(group=np.array(["x", "y", "z"])[truth])
    if kind == "low outlier":
        table["b"] = (table["b"] - table["b"].min() + 20).round(2)
        table.loc[7, "b"] = 0.01
        table.loc[9] = np.nan
        return table.assign(again=table["c"])
    if kind == "indicator":  # a few indicators of many places, year by year
        _place, indicator, year = np.unravel_index(np.arange(10 * 3 * 14), (10, 3, 14))
        X = rng.normal(size=(420, 3)) + indicator[:, None]
        named = pd.DataFrame({"Indicator": np.array(["births", "deaths", "moves"])[indicator]})
        dates = [f"{2000 + y}-01-01" for y in year]
        return named.assign(date=dates, u=X[:, 0].round(3), v=X[:, 1].round(3), w=X[:, 2].round(3))
    origin, year = np.divmod(np.arange(3 * 25), 25)  # "origin": three of them
    X = rng.normal(size=(75, 3)) + origin[:, None]
    named = pd.DataFrame({"origin": np.array(["EU", "JP", "US"])[origin], "year": 1990 + year})
    return named.assign(u=X[:, 0].round(3), v=X[:, 1].round(3), w=X[:, 2].round(3))


def real_table(name):
    rng = np.random.default_rng(0)
    if name == "wine":
        return pd.read_csv(load_incomplete_wine().filename).rename(columns=lambda c: re.sub(r"\W", "_", c))
    load = {"iris": load_iris, "cancer": load_breast_cancer, "diabetes": load_diabetes}[name]
    table = load(as_frame=True).frame.iloc[:, :12].rename(columns=lambda c: re.sub(r"\W", "_", c))
    return table.mask(rng.random(table.shape) < 0.1).assign(target=load().target.astype(str) + "t")


KINDS = ("rare type", "group", "low outlier", "indicator", "origin")


@pytest.mark.parametrize("name", [*KINDS, "wine", "iris", "cancer", "diabetes"])
def test_sentences_are_true_of_the_table(monkeypatch, tmp_path, name):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    table = random_table(name) if name in KINDS else real_table(name)
    summary, labels = fitted(monkeypatch, tmp_path, table, "-k", "3", "--shape", "round")
    used, known = summary["columns"], 0
    for text in said_in(summary):
        assert not re.search(f"{SINGULAR}|-0%", text), text
        known += any(check(text, table, labels, used) for check in CHECKS)
    assert known >= len(summary["clusters"])
    notes = " ".join(note["text"] for note in summary["notes"])
    if name in ("group", "iris", "rare type"):  # of which the last has a base rate of 99 %
        assert ("largely follow" in notes) == (name != "rare type")
    if name in ("indicator", "origin"):  # three of them: one row for each would leave three
        assert "are alike, clusters may be" in notes
        assert "make one row" not in notes


@pytest.mark.parametrize("seed", range(5))
def test_sentences_on_gaps_are_true(seed):
    rng = np.random.default_rng((FIRST_SEED, seed))
    X = rng.normal(size=(300, 5))
    labels = rng.integers(3, size=300)
    X[rng.random(300) < np.array([0.05, 0.3, 0.6])[labels], 4] = np.nan
    if seed > 1:
        X[rng.random(300) < 0.2, 3] = np.nan
    if seed > 3:
        X[labels == 1, :2] = np.nan
    names = [f"v{j}" for j in range(5)]
    found = diagnose(pd.DataFrame(X, columns=names), labels)
    (said,) = [text for text in found.sentence_.splitlines() if "differ in which values are missing" in text]
    cells = re.findall(rf"(v\d) \(missing in {SHARE} of cluster (\d), {SHARE} of cluster (\d)\)", said)
    assert 1 <= len(cells) <= 3
    assert {name for name, *_ in cells} <= {f"v{j}" for j in range(5) if np.isnan(X[:, j]).any()}
    for name, *low_high in cells:
        missing = np.isnan(X[:, names.index(name)])
        shares = [missing[labels == cluster].mean() for cluster in range(3)]
        (*low, least), (*high, most) = low_high[:3], low_high[3:]
        assert is_share(*low, shares[int(least)])
        assert is_share(*high, shares[int(most)])
        assert shares[int(least)] == min(shares) < max(shares) == shares[int(most)]
    n = sum(np.isnan(X).any(axis=0))
    assert f"in {n} of 5 columns" in found.sentence_.splitlines()[0]
    assert f"{(~np.isnan(X).any(axis=1)).sum()} of 300 rows" in found.sentence_.splitlines()[0]


@pytest.mark.parametrize(("n", "said"), [(1, "One row has far more"), (9, "Some rows have far more")])
def test_rows_with_many_gaps_are_as_many_as_is_said(n, said):
    X = np.random.default_rng(FIRST_SEED).normal(size=(100, 20))
    X[:n, 1:] = np.nan
    assert said in str(diagnose(X))


def test_columns_with_the_most_gaps_are_all_named():
    X = np.random.default_rng(FIRST_SEED).normal(size=(100, 4))
    X[:40, 1] = X[60:, 2] = np.nan
    X[:2, 3] = np.nan
    assert "most in column 1 and column 2 (40%)" in diagnose(X).sentence_.splitlines()[0]


@pytest.mark.filterwarnings("ignore:3 of 30 rows have nothing")
def test_one_column_is_in_the_singular():
    X = np.arange(30.0)[:, None]
    X[:3] = np.nan
    assert (
        "of 1 column, none" in KPOD(2, missingness="auto", random_state=0).fit(X).missingness_decision_.reason
    )


def test_shares_never_round_to_minus_nothing():
    assert [percent(share) for share in (-1e-17, -0.003, -0.3, 0.0, 0.003, 1.0)] == [
        "0%", "<0%", "-30%", "0%", "<1%", "100%"
    ]  # fmt: skip


def test_standardised_columns_are_not_told_to_be_standardised(monkeypatch, tmp_path):
    """Of three columns, one has a single value: each of the others holds half of the variance."""
    rng = np.random.default_rng(FIRST_SEED)
    table = pd.DataFrame(rng.normal(size=(12, 3)), columns=list("abc"))
    table.loc[1:, "c"] = np.nan
    for seed in range(5):
        table["a"] = rng.normal(size=12)
        summary, _ = fitted(monkeypatch, tmp_path, table, "-k", "2", "--seed", seed)
        assert not any("total variance" in caution["text"] for caution in summary["cautions"])


@pytest.mark.parametrize("side", ["high", "low"])
def test_what_is_advised_against_extreme_values_helps(monkeypatch, tmp_path, side):
    """The caution is gone once its advice is followed; logarithms are no advice against low values."""
    rng = np.random.default_rng(FIRST_SEED)
    table = pd.DataFrame(rng.uniform(80, 90, size=(60, 3)), columns=list("abc")).round(2)
    table.loc[3, "a"] = 9_000 if side == "high" else 0.1

    def cautions(*options):
        summary, _ = fitted(monkeypatch, tmp_path, table, "-k", "2", "--shape", "round", *options)
        return [caution["text"] for caution in summary["cautions"]]

    (text,) = [caution for caution in cautions() if "half of the variance of a (1 of 60)" in caution]
    ways = re.findall(r"\((--[^)]*)\)", text)
    assert any("--log" in way for way in ways) == (side == "high")
    (clip,) = [way for way in ways if "--clip" in way]
    assert not any("half of the variance of a" in caution for caution in cautions(*shlex.split(clip)))


@pytest.mark.parametrize("n", [30, 100, 170, 350, 1000])
def test_two_values_that_dominate_are_seen_at_every_size(n):
    """As two large countries do among all: they hold most of the variance of a column."""
    rng = np.random.default_rng((FIRST_SEED, n))
    table = pd.DataFrame({"people": rng.normal(50, 5, n), "area": rng.normal(9, 2, n)})
    plain = [note.kind for note in analyze(table, 2, verdict=False).cautions]
    table.loc[:1, "people"] = 1400.0
    cautions = {note.kind: note for note in analyze(table, 2, verdict=False).cautions}
    assert "a few values dominate" not in plain
    assert cautions["a few values dominate"].columns == ("people",)
    assert cautions["a few values dominate"].values["few"][0][0] <= 2
