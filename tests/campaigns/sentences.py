"""Read back the sentences of `kpod fit` on files, and recompute it from the data with pandas alone.

    python -m tests.campaigns.sentences FILE...

fits each CSV or JSON file with three clusters, parses every sentence of the JSON summary, and prints those
that are false, those that nothing here can check, and how many were true. Nothing of the library computes
what is expected: tables are read by pandas, numbers in text by the three lines of `as_numbers`.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

UNITS = {"M": 1e6, "B": 1e9, "T": 1e12, "%": 0.01}
NUMBER = r"[-<>]?[\d.,e+-]*\d[MBT%]?"


TRUTH = {
    **dict.fromkeys(["yes", "y", "true", "t", "on", "ja", "oui", "si", "sí", "sim"], "1"),
    **dict.fromkeys(["no", "n", "false", "f", "off", "nein", "non", "não"], "0"),
}
POWERS = {"k": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9}


def read(path, dialect):
    if path.suffix == ".json":
        return pd.read_json(path)
    if path.suffix in (".xlsx", ".xls"):
        return pd.read_excel(path)
    how = {"sep": dialect["delimiter"], "encoding": dialect["encoding"], "low_memory": False}
    return pd.read_csv(path, **how)


def as_numbers(column, decimal="."):
    """Numbers, also from $1,200, 1.234,5, 87%, 1.2k, 60 kg and yes or no; NaN for other text."""
    if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
        return column.astype(float).replace([np.inf, -np.inf], np.nan)
    text = column.astype("string").str.strip().str.lower()
    known = set(text.dropna()) - {"", "-", "?", "."}
    if known and known <= set(TRUTH):
        return pd.to_numeric(text.map(TRUTH), errors="coerce").astype(float)
    text = text.str.replace(r"[$€£%]|(?<=\d)[ '\u00a0](?=\d{3})", "", regex=True).str.strip()
    if decimal == "," or text.str.fullmatch(r"-?\d+,\d{1,2}").any():
        text = text.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
    parts = text.str.replace(",", "", regex=False).str.extract(
        r"^(\(?[-+]?\d*\.?\d+(?:e[-+]?\d+)?\)?)\s*(.*)$"
    )
    number = pd.to_numeric(parts[0].str.replace(r"^\((.*)\)$", r"-\1", regex=True), errors="coerce")
    units = parts[1].fillna("")
    powers = units.map(POWERS).fillna(1.0)
    one_unit = units[units.str.len() > 0].str.rstrip("s").nunique() <= 1 or powers.ne(1).any()
    return (number * powers).where(one_unit | (units == "")).astype(float)


def is_written(text, value):
    """Whether a number as it is written is the value, to the digits that are there."""
    if text[0] in "<>":
        limit = float(text[1:].rstrip("%")) / 100
        return value < limit if text[0] == "<" else value > limit
    unit = UNITS.get(text[-1], 1.0)
    digits = text.rstrip("MBT%").replace(",", "")
    decimals = len(digits.partition(".")[2])
    step = max(10.0**-decimals, 10.0 ** (np.floor(np.log10(max(abs(value / unit), 1e-300))) - 2))
    return abs(float(digits) - value / unit) <= 0.501 * step


class Said:
    """The sentences on one table."""

    def __init__(self, path, summary, labels):
        dialect = summary["text_file"] or {}
        self.table, self.summary, self.labels = read(path, dialect), summary, labels
        self.table.columns = [str(name).strip() for name in self.table.columns]
        self.used, decimal = summary["columns"], dialect.get("decimal", ".")
        self.numbers = {
            name: as_numbers(self.table[name], decimal) for name in self.used if name in self.table
        }
        for note in summary["notes"]:
            if note["kind"] == "check boxes":
                self.numbers |= {
                    name: self.table[name].notna().astype(float)
                    for name in note["columns"]
                    if name in self.numbers
                }
        self.expected = {name: column.copy() for name, column in self.numbers.items()}
        for cell in summary.get("shape", {}).get("unexpected_values", ()):
            if cell["column"] in self.expected:
                self.expected[cell["column"]].iloc[cell["row"] - 1] = np.nan
        self.false, self.unknown, self.n_true = [], [], 0

    def check(self, text, parse):
        """Count a sentence; `parse` gives whether each of its claims is true, or nothing."""
        found = list(parse(text))
        if not found:
            self.unknown.append(text)
        elif all(ok for ok, _ in found):
            self.n_true += 1
        else:
            self.false.append(f"{text}   [{'; '.join(why for ok, why in found if not ok)}]")

    def of(self, name, rows, inside=""):
        """The mean of some rows, without the values that no cluster expects where it is said to be so."""
        values = self.expected if "without" in inside else self.numbers
        return float(values[name][rows].mean())

    def names(self, text):
        """The columns named in a text, the longest names first, and what is in brackets behind them."""
        for name in sorted(self.numbers, key=len, reverse=True):
            for found in re.finditer(re.escape(name) + r" \(([^()]*(?:\([^()]*\)[^()]*)*)\)", text):
                yield name, found[1]
            text = text.replace(f"{name} (", "\0 (")

    def cluster(self, text):
        found = re.match(r"cluster (\d+): ([\d,]+) rows?, (.*)", text)
        own = self.labels == int(found[1])
        placed = self.labels >= 0
        yield own.sum() == int(found[2].replace(",", "")), "rows"
        said, _, contrast = found[3].partition("unlike cluster ")
        clauses = re.split(r"(?:^|, )(?=(?:high|low) in )", said)
        for clause in clauses:
            sign = 1 if clause.startswith("high") else -1
            for name, inside in self.names(clause):
                values = re.match(rf"({NUMBER}), others ({NUMBER})", inside)
                if not values:
                    yield False, f"unread: {inside}"
                    continue
                column = (self.expected if "without" in inside else self.numbers)[name]
                z = (column[own].mean() - column[placed].mean()) / column[placed].std(ddof=0)
                # A mixture's own spread of a column counts rows by probability.
                yield sign * z >= (0.3 if "shape" in self.summary else 0.499), f"{name} z {z:.2f}"
                here, there = self.of(name, own, inside), self.of(name, placed & ~own, inside)
                yield is_written(values[1], here), f"{name} {here}"
                yield is_written(values[2], there), f"{name} others {there}"
                left_out = re.search(r"without ([\d,]+) outlying", inside)
                n = int((self.numbers[name].notna() & self.expected[name].isna())[placed].sum())
                yield (int(left_out[1].replace(",", "")) if left_out else 0) == n, f"{name} without {n}"
                column = self.numbers[name]
                known = re.search(r"known for ([\d,]+) of ([\d,]+)", inside)
                n = int(column[own].notna().sum())
                yield bool(known) == (n < own.sum() / 2), f"{name} known for {n}"
        if contrast:
            other = self.labels == int(contrast.partition(",")[0])
            for name, inside in self.names(contrast):
                here, there = re.match(rf"({NUMBER}), there ({NUMBER})", inside).groups()
                yield (
                    is_written(here, self.of(name, own, inside)),
                    f"{name} here {self.of(name, own, inside)}",
                )
                yield is_written(there, self.of(name, other, inside)), f"{name} there"

    def rule(self, lines, rule):
        """Every row has one cluster by the rule, and it is right as often as it was said to be."""
        given = np.full(len(self.table), -1)
        ways = 0
        for line in lines:
            cluster, _, conditions = line.partition(" if ")
            for way in conditions.split("; or "):
                rows = self.rows_of(way)
                if rows is None:
                    return
                yield not (rows & (given >= 0)).any(), "two ways"
                given[rows] = int(cluster.split()[1])
                ways += 1
        placed = self.labels >= 0
        yield (given[placed] >= 0).all(), "rows without a way"
        right = (given == self.labels)[placed].mean()
        yield right >= rule["accuracy"] - 0.03, f"right for {right:.3f}"
        yield is_written(re.search(rf"largest: ({NUMBER})", rule["sentence"])[1], np.bincount(
            self.labels[placed]).max() / placed.sum()), "baseline"  # fmt: skip

    def rows_of(self, way):
        rows = np.ones(len(self.table), bool)
        for name in sorted(self.numbers, key=len, reverse=True):
            column = self.numbers[name].to_numpy()
            pattern = re.escape(name) + rf" (below|at least|is) ({NUMBER})( \(or missing\))?"
            for found in re.finditer(pattern, way):
                value = float(found[2].replace(",", ""))
                with np.errstate(invalid="ignore"):
                    test = {"below": column < value, "at least": column >= value, "is": column == value}
                rows &= test[found[1]] | (np.isnan(column) if found[3] else False)
            way = re.sub(pattern, "", way)
            for found in re.finditer(re.escape(name) + r" is (missing|known)", way):
                rows &= np.isnan(column) == (found[1] == "missing")
            way = re.sub(re.escape(name) + r" is (missing|known)", "", way)
        return rows if not way.replace("and", "").strip(" ,") else None

    def other_number(self, text):
        found = re.match(r"with \d+ clusters, cluster (\d+) is split into ([\d,]+) and ([\d,]+) rows", text)
        if found:
            size = (self.labels == int(found[1])).sum()
            parts = sum(int(n.replace(",", "")) for n in found.groups()[1:])
            sampled = len(self.labels) > 5000
            yield sampled or 0.8 * size <= parts <= size, f"{parts} of {size}"
        elif re.match(r"with \d+ clusters?, (\d+ and \d+ become one|rows are divided differently)", text):
            yield True, ""

    def remark(self, text):  # noqa: PLR0912
        """Notes and cautions whose numbers can be recounted."""
        table, n_rows = self.table, len(self.table)
        if found := re.match(r"([\d,]+) rows? (?:is a copy of another|are copies of others)", text):
            yield int(found[1].replace(",", "")) >= table.astype(str).duplicated().sum(), "copies"
        elif found := re.match(r"([\d,]+) rows? \(.*?\) (with nothing|ha\w+ at most a quarter)", text):
            observed = pd.DataFrame(self.numbers).notna().sum(axis=1)
            few = (
                observed == 0 if "nothing" in found[2] else (observed > 0) & (observed <= len(self.used) / 4)
            )
            yield int(found[1].replace(",", "")) == few.sum(), f"{few.sum()} rows"
        elif re.match(r"(A few extreme values make|One extreme value makes) up more than half", text):
            for name, inside in self.names(text.partition("variance of ")[2]):
                counts = re.match(r"([\d,]+) of ([\d,]+)", inside)
                if not counts:  # the name goes on with a bracket
                    return
                n, total = (int(part.replace(",", "")) for part in counts.groups())
                entries = self.numbers[name].dropna()
                squares = np.sort((entries - entries.mean()) ** 2)[::-1]
                yield total == len(entries), f"{name}: {len(entries)} entries"
                yield squares[:n].sum() > 0.5 * squares.sum(), f"{name} share"
        elif text.startswith("More than half of the entries are missing in"):
            for name, inside in self.names(text):
                yield is_written(inside, self.numbers[name].isna().mean()), name
        elif text.startswith("Fewer than 5 rows in cluster"):
            clusters = re.match(r"Fewer than 5 rows in clusters? ([\d, and]+):", text)
            for cluster in re.findall(r"\d+", clusters[1]):
                yield (self.labels == int(cluster)).sum() < 5, f"cluster {cluster}"
        elif found := re.match(r"there is one row for each (.+?) and (.+?)\. Rows", text):
            yield not table.duplicated([found[1], found[2]]).any(), "one row for each"
        elif found := re.match(r"there are (?:about )?([\d,]+) rows for each (.+?)(?:,|\.) ", text):
            sizes = table[found[2]].value_counts()
            close = abs(int(found[1].replace(",", "")) - sizes.median()) <= 0.5
            yield (
                close or abs(int(found[1].replace(",", "")) - sizes.mean()) <= 0.5,
                f"median {sizes.median()}",
            )
        elif found := re.match(r"(.+): (?:coordinates|years \((\d+) to (\d+)\)) are clustered", text):
            if found[2]:
                column = self.numbers[found[1]]
                yield (column.min(), column.max()) == (float(found[2]), float(found[3])), "years"
            else:
                yield True, ""
        elif found := re.match(r"the clusters largely follow (.+?), which was not", text):
            both = pd.crosstab(self.labels[self.labels >= 0], table[found[1]][self.labels >= 0])
            share = re.search(r"clustered: ([<>]?[\d.]+%)", text)[1]
            yield is_written(share, both.max(axis=1).sum() / both.to_numpy().sum()), "share"
        elif found := re.match(r"(.+): '(.+?)' is read as ([-\d.e+]+)\.", text):
            several = re.match(r"numbers in (.+?)(?:,| and) .* were written as text", found[1])
            entries = table[several[1] if several else found[1]].astype(str).str.strip()
            yield (entries == found[2].strip()).any(), "occurs"
        elif n_rows and (found := re.match(r"The best loss was found in 1 of (\d+) starts", text)):
            yield int(found[1]) > 1, "starts"
        else:
            yield from self.remark_on_columns(text)
            yield from self.remark_on_rows(text)

    def remark_on_columns(self, text):
        """What is said of gaps, of entries that are no numbers, of codes, and of columns beside others."""
        placed = self.labels[self.labels >= 0]
        if text.startswith("The share of missing entries differs between clusters in"):
            large = [k for k in np.unique(placed) if (placed == k).sum() >= 20]
            for name, inside in self.names(text):
                shares = [self.numbers[name][self.labels == k].isna().mean() for k in large]
                low, high = inside.split(" to ")
                yield is_written(low, min(shares)), f"{name} {min(shares)}"
                yield is_written(high, max(shares)), f"{name} {max(shares)}"
        elif "of the centers rest" in text:
            cells = re.findall(r"(?:: |, | and )(.+?) in cluster (\d+) \(([\d,.]+)\)", text)
            for name, cluster, count in cells:
                n = (
                    self.numbers[name][self.labels == int(cluster)].notna().sum()
                    if name in self.numbers
                    else -1
                )
                yield is_written(count, n), f"{name} in cluster {cluster}: {n}"
        elif found := re.match(r"(.+?): '(.+?)' \(.*? (?:not numbers|not a number) and", text):
            entries = self.table[found[1]].dropna().astype(str).str.strip()
            yield entries.str.startswith(found[2][:20]).any(), "occurs"
            more = re.search(r"and ([\d,]+) more entr", text)
            n = 1 + (int(more[1].replace(",", "")) if more else 0)
            yield n <= as_numbers(entries).isna().sum() + self.table[found[1]].isna().sum(), "how many"
        elif found := re.match(r"(.+?): ('?[-\d. and']+'?) \((?:once|([\d,]+) times)\) may stand for", text):
            codes = [float(code.strip("'")) for code in found[2].split(" and ")]
            n = self.numbers[found[1]].isin(codes).sum()
            yield n == int((found[3] or "1").replace(",", "")), f"{n} times"
        elif found := re.match(r"only one column is clustered, (.+?):", text):
            yield self.used == [found[1]], f"{len(self.used)} columns"
        else:
            for line in re.split(r", | and |; ", text):
                if found := re.match(r"(.+?) is equal to (.+?)(?:$|\.|,)", line):
                    one, other = (as_numbers(self.table[name]) for name in found.groups())
                    yield ((one == other) | (one.isna() & other.isna())).all(), line
                elif found := re.match(
                    r"(.+?) is ([-\d.e+]+) times (.+?)(?: (plus|minus) ([\d.e+-]+))?$", line
                ):
                    one, other = (as_numbers(self.table[name]) for name in (found[1], found[3]))
                    shift = float(found[5] or 0) * (-1 if found[4] == "minus" else 1)
                    near = (one - float(found[2]) * other - shift).abs() <= 2e-3 * one.abs().max()
                    yield near[one.notna() & other.notna()].all(), line

    def margins(self):
        """By how much the own center is nearer than the next, in standardised columns."""
        z = pd.DataFrame(self.numbers)[self.used]
        z = ((z - z.mean()) / z.std(ddof=0)).to_numpy()
        clusters = np.unique(self.labels[self.labels >= 0])
        centers = [pd.DataFrame(z[self.labels == k]).mean().fillna(0).to_numpy() for k in clusters]
        distances = np.array([np.sqrt(np.nansum((z - center) ** 2, axis=1)) for center in centers])
        own = clusters[:, None] == self.labels
        a, b = np.where(own, distances, 0).sum(axis=0), np.where(own, np.inf, distances).min(axis=0)
        return (b - a) / np.maximum(a, b)

    def remark_on_rows(self, text):
        """Of individuals with several rows, rows that are sums of others, and rows between clusters."""
        found = re.match(r"([\d,]+) rows? \(.+?\) (?:is|are) nearly equidistant from two centers", text)
        if found and set(self.used) <= set(self.numbers):
            n, near = int(found[1].replace(",", "")), int((self.margins() < 0.05)[self.labels >= 0].sum())
            yield abs(n - near) <= max(1, 0.02 * n), f"{near} rows"
        elif found := re.search(r"If rows of the same (.+?) are alike, clusters may be", text):
            n_units = self.table[found[1]].nunique()
            if said := re.search(r"one row for each .+? \(([\d,]+) rows\)", text):
                yield int(said[1].replace(",", "")) == n_units, f"{n_units} of {found[1]}"
            else:
                yield n_units < 20, f"{n_units} of {found[1]}"
        elif found := re.match(r"'.+' in (.+?) \(([\d,]+) rows?\) (?:is|are|may be) (?:a )?sums? of", text):
            names = re.findall(r"'([^']+)'", text.partition(" in ")[0])
            n = self.table[found[1]].astype(str).str.strip().isin(names).sum()
            yield n <= int(found[2].replace(",", "")), f"{n} rows"

    def verdict(self, text):
        """Under how many other choices the clusters are said to be the same, against the list of these."""
        others = self.summary["verdict"]["others"]
        k = len(np.unique(self.labels[self.labels >= 0]))
        same = [one["n_clusters"] == k and one["agreement"] >= 0.8 for one in others]
        if found := re.search(r"under (?:all|(none|\d+) of) (\d+) other choices", text):
            n = {"none": 0, None: len(same)}.get(found[1], found[1])
            yield int(n) == sum(same), f"{sum(same)} are the same"
            yield int(found[2]) == len(same), f"{len(same)} choices"
        elif "the same with another seed" in text:
            yield same == [True], "one choice"
        if found := re.match(r"(\d+) (?:groups|clusters|pieces)", text):
            yield int(found[1]) == k, f"{k} clusters"


def checked(path, options):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.csv"
        command = [sys.executable, "-m", "kpod", "fit", str(path), "--json", "-o", str(out), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip()
        summary = json.loads(done.stdout)
        labels = pd.read_csv(out, low_memory=False)["cluster"].to_numpy()
    said = Said(path, summary, labels)
    if len(said.table) != len(labels):
        return f"pandas reads {len(said.table)} rows, kpod {len(labels)}"
    for one in summary["clusters"]:
        said.check(one["sentence"], said.cluster)
    if "verdict" in summary:
        said.check(summary["verdict"]["sentence"], said.verdict)
    for one in summary.get("other_numbers", ()):
        said.check(one["sentence"], said.other_number)
    if "rule" in summary:
        rule = summary["rule"]
        said.check(rule["sentence"], lambda _: said.rule(rule["lines"], rule))
    for one in [*summary["cautions"], *summary["notes"]]:
        said.check(one["text"], said.remark)
    return said


def main(paths):
    n_true = n_false = n_unknown = 0
    for path in map(Path, paths):
        said = checked(path, ["-k", "3"])
        if isinstance(said, str):
            print(f"{path.name}: {said}")
            continue
        n_true, n_false, n_unknown = (
            n_true + said.n_true,
            n_false + len(said.false),
            n_unknown + len(said.unknown),
        )
        print(
            f"{path.name}: {said.n_true} true, {len(said.false)} false, {len(said.unknown)} not checked",
            flush=True,
        )
        for text in said.false:
            print(f"  FALSE {text}")
        for text in said.unknown:
            print(f"  not checked: {text}")
    print(f"{n_true} true, {n_false} false, {n_unknown} not checked")
    return n_false


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
