"""The six claims of the paper's text, each with a verdict and the cells that decide it.

A claim has parts. A part about seconds compares our compiled code with packages in R, which the
paper did not, so it is "not comparable" whatever the figures say; they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from paper.datasets import Cell
from paper.methods import methods, titles
from paper.summary import Summary, contestants
from paper.tables import number

HOLDS, FAILS, NOT_COMPARABLE, NOT_RUN = "holds", "fails", "not comparable", "not run"

# What the claims' words are taken to mean, in Rand scores ...
WELL = 0.05  # "do well": at most this much below k-means on the complete table
REASONABLE = 0.10  # "reasonable": likewise
CLOSE = 0.05  # "close", "comparable": at most this much below the best
EQUAL = 0.02  # "equal", "essentially equivalent": at most this much apart
# ... and in ratios of seconds.
SLOWS = 1.25
# The paper stopped a scenario of 100 trials after 55 hours.
PAPERS_LIMIT = 55 * 3600 / 100

KPOD = "published"
MARKS = {True: "", False: "not so in ", None: "unknown: "}


@dataclass
class Part:
    """One statement within a claim."""

    text: str
    verdict: str
    cells: list[str] = field(default_factory=list)


@dataclass
class Claim:
    """A claim of the paper: it holds if its parts do, as far as they can be compared."""

    number: int
    text: str
    parts: list[Part]

    @property
    def verdict(self) -> str:
        verdicts = {part.verdict for part in self.parts}
        return next(v for v in (FAILS, NOT_RUN, HOLDS, NOT_COMPARABLE) if v in verdicts)


def check_claims(summary: Summary) -> list[Claim]:
    return [claim(summary) for claim in (few_gaps, failures, accuracy, seconds, ten_clusters, many_clusters)]


def published_rows(mechanism: str) -> list[str]:
    """The paper's methods as it ran them: one start each."""
    return [
        next(iter(method.rows))
        for method in methods().values()
        if method.published and (method.mechanisms is None or mechanism in method.mechanisms)
    ]


def judged(text: str, checks: Iterable[tuple[bool | None, str]]) -> Part:
    """A part that holds where every check does; a check that is None could not be made."""
    checks = list(checks)
    results = [holds for holds, _ in checks]
    verdict = FAILS if False in results else NOT_RUN if None in results or not results else HOLDS
    # One cell that speaks against it decides; the others need not be read.
    deciding = [check for check in checks if check[0] is False] or checks
    return Part(text, verdict, [f"{MARKS[holds]}{line}" for holds, line in deciding])


def below(summary: Summary, cell: Cell, row: str, other: str, most: float) -> tuple[bool | None, str]:
    """Whether `row` is at most `most` below `other`."""
    gap = summary.difference(cell, row, other)
    if gap is None:
        why = no_comparison(summary, cell, row, other)
        return None, f"{cell}, {titles()[row]} against {titles()[other]}: {why}"
    return gap.mean >= -most, (
        f"{cell}, {titles()[row]} {summary.at(cell, row).mean('rand'):.3f}, "
        f"{gap.mean:+.3f} ± {gap.error:.3f} against {titles()[other]}"
    )


def no_comparison(summary: Summary, cell: Cell, *rows: str) -> str:
    """Why two rows cannot be compared."""
    empty = {titles()[row]: summary.at(cell, row) for row in rows if not summary.at(cell, row).complete}
    said = [f"{title} {entry.why_empty}" for title, entry in empty.items()]
    return "; ".join(said) or "fewer than two trials in common"


def most_accurate(summary: Summary, cell: Cell) -> tuple[bool | None, str]:
    """Whether no published method is ahead of k-POD by more than one standard error."""
    rivals = [row for row in published_rows(cell.mechanism) if row != KPOD]
    if not summary.at(cell, KPOD).complete or not any(summary.at(cell, row).outcomes for row in rivals):
        return None, f"{cell}: not run"
    ahead = summary.behind(cell, KPOD, rivals)
    said = ", ".join(
        f"{titles()[row]} " + (f"{entry.mean('rand'):.3f}" if entry.complete else f"({entry.why_empty})")
        for row in (KPOD, *rivals)
        for entry in [summary.at(cell, row)]
    )
    decided = all(
        summary.difference(cell, KPOD, row) if entry.complete else entry.failed or entry.over_time
        for row in rivals
        for entry in [summary.at(cell, row)]
    )
    return (False if ahead else decided or None), f"{cell}: {said}"


def close_to_best(summary: Summary, cell: Cell) -> tuple[bool | None, str]:
    gaps = {row: summary.difference(cell, KPOD, row) for row in published_rows(cell.mechanism) if row != KPOD}
    known = {row: gap for row, gap in gaps.items() if gap is not None}
    if not known:
        return None, f"{cell}: not run"
    row = min(known, key=lambda name: known[name].mean)
    return below(summary, cell, KPOD, row, CLOSE)


def few_gaps(summary: Summary) -> Claim:
    least = [summary.cells("wine", mechanism)[0] for mechanism in ("MCAR", "MAR", "NMAR")]
    return Claim(1, "With few gaps all methods do well on wine; deletion is reasonable under MAR.", [
        judged(f"all within {WELL} of k-means on the complete table at the lowest percentage",
               [below(summary, cell, row, "complete", WELL)
                for cell in least for row in published_rows(cell.mechanism)]),
        judged(f"deletion within {REASONABLE} of it under MAR",
               [below(summary, cell, "deletion", "complete", REASONABLE)
                for cell in summary.cells("wine", "MAR")]),
    ])  # fmt: skip


def failures(summary: Summary) -> Claim:
    def fails_from(row: str, starts: dict[str, int]) -> Part:
        checks = []
        for cell in summary.cells("wine"):
            entry = summary.at(cell, row)
            expected = cell.percent >= starts.get(cell.mechanism, 101)
            line = f"{cell}: {entry.why_empty or f'completed, trials: {len(entry.outcomes)}'}"
            known = entry.complete or entry.failed or entry.over_time
            checks.append(((not entry.complete) == expected if known else None, line))
        said = ", ".join(f"{percent} % ({mechanism})" for mechanism, percent in starts.items())
        claimed = f"fails from {said}, not before" if starts else "never fails"
        return judged(f"{titles()[row]} {claimed}", checks)

    text = "Amelia fails on wine from 35 % (MCAR), 16 % (MAR), 36 % (NMAR), mice from 19 % (MAR), mi never."
    return Claim(2, text, [
        fails_from("amelia", {"MCAR": 35, "MAR": 16, "NMAR": 35}),
        fails_from("mice", {"MAR": 19}),
        fails_from("mi", {}),
    ])  # fmt: skip


def accuracy(summary: Summary) -> Claim:
    best = {cell for cell in summary.cells("wine")
            if cell.percent >= {"MCAR": 45, "MAR": 12, "NMAR": 101}[cell.mechanism]}  # fmt: skip
    text = "k-POD is the most accurate on wine from 45 % (MCAR) and 12 % (MAR), and close elsewhere."
    return Claim(3, text, [
        judged("nobody ahead by more than one standard error from 45 % (MCAR) and 12 % (MAR)",
               [most_accurate(summary, cell) for cell in summary.cells("wine") if cell in best]),
        judged(f"within {CLOSE} of the best elsewhere",
               [close_to_best(summary, cell) for cell in summary.cells("wine") if cell not in best]),
    ])  # fmt: skip


def times_longer(summary: Summary, row: str, cells: Iterable[Cell], text: str) -> Part:
    """How many times k-POD's seconds another method takes, least and most: shown, not judged."""
    ratios, said = {}, []
    for cell in cells:
        ours, theirs = summary.at(cell, KPOD), summary.at(cell, row)
        if ours.complete and theirs.complete:
            ratios[cell] = theirs.mean("seconds") / ours.mean("seconds")
        else:
            said.append(f"{cell}: {no_comparison(summary, cell, KPOD, row)}")
    for cell in sorted(ratios, key=ratios.__getitem__)[:: max(len(ratios) - 1, 1)]:
        seconds = [f"{titles()[name]} {summary.at(cell, name).mean('seconds'):.2g} s" for name in (KPOD, row)]
        said.append(f"{cell}: {', '.join(seconds)}, {number(ratios[cell], 'seconds')} times")
    return Part(text, NOT_COMPARABLE if ratios else NOT_RUN, said)


def seconds(summary: Summary) -> Claim:
    cells = summary.cells("wine")
    text = (
        "On wine k-POD is about as fast as Amelia, much faster than mice (MCAR, NMAR), far faster "
        "than mi; deletion is fastest."
    )
    return Claim(4, text, [
        times_longer(summary, "amelia", cells, "about as fast as Amelia"),
        times_longer(summary, "mice", [c for c in cells if c.mechanism != "MAR"], "much faster than mice"),
        times_longer(summary, "mi", cells, "far faster than mi"),
        times_longer(summary, "deletion", summary.cells("wine", "MAR"), "deletion fastest"),
    ])  # fmt: skip


def does_not_finish(summary: Summary, table: str, row: str) -> Part:
    """Whether a method runs out of time, which depends on how much it is given."""
    verdicts, said = [], []
    for cell in summary.cells(table):
        entry = summary.at(cell, row)
        if entry.complete:
            verdicts.append(FAILS)
            said.append(f"{cell}: completed, {entry.mean('seconds'):.0f} s a fit")
            continue
        said.append(f"{cell}: {entry.why_empty}")
        if entry.over_time:
            verdicts.append(HOLDS if entry.limit >= PAPERS_LIMIT else NOT_COMPARABLE)
        else:
            verdicts.append(HOLDS if entry.failed else NOT_RUN)
    verdict = next(v for v in (FAILS, NOT_RUN, NOT_COMPARABLE, HOLDS) if v in verdicts)
    text = f"{titles()[row]} does not finish (theirs: 55 hours for 100 trials, {PAPERS_LIMIT:.0f} s each)"
    return Part(text, verdict, said)


def equal_to_mice(summary: Summary, cell: Cell) -> tuple[bool | None, str]:
    gap = summary.difference(cell, KPOD, "mice")
    _, line = below(summary, cell, KPOD, "mice", EQUAL)
    return (None if gap is None else abs(gap.mean) <= EQUAL), line


def ten_clusters(summary: Summary) -> Claim:
    cells = summary.cells("k10")
    best = {Cell("k10", "MCAR", 75), Cell("k10", "NMAR", 50)}
    text = (
        "k = 10: Amelia and mi do not finish; k-POD is the most accurate at 75 % MCAR and 50 % NMAR, "
        "equal to mice elsewhere, and much faster."
    )
    return Claim(5, text, [
        does_not_finish(summary, "k10", "amelia"),
        does_not_finish(summary, "k10", "mi"),
        judged("nobody ahead by more than one standard error at 75 % MCAR and 50 % NMAR",
               [most_accurate(summary, cell) for cell in sorted(best)]),
        judged(f"within {EQUAL} of mice elsewhere",
               [equal_to_mice(summary, cell) for cell in cells if cell not in best]),
        times_longer(summary, "mice", cells, "much faster than mice"),
    ])  # fmt: skip


def many_clusters(summary: Summary) -> Claim:
    cells = summary.cells("k25")
    checks = [most_accurate(summary, cell) for cell in cells]
    n_not = sum(holds is False for holds, _ in checks)
    if n_not == 1:  # the one that is allowed
        checks = [(holds is not None or None, line) for holds, line in checks]
    slows = [growth(summary, cell, KPOD) for cell in cells]
    stays = [growth(summary, cell, "mice") for cell in cells]
    text = (
        "k = 25: the same; k-POD is best in all but one cell; at 25 % MCAR it takes about as long as "
        "mice; it slows as k grows, mice does not."
    )
    return Claim(6, text, [
        does_not_finish(summary, "k25", "amelia"),
        does_not_finish(summary, "k25", "mi"),
        judged("nobody ahead by more than one standard error in all cells but one", checks),
        times_longer(summary, "mice", [cells[0]], "about as long as mice at 25 % MCAR"),
        judged("k-POD takes longer for 25 clusters than for 10",
               [(None if ratio is None else ratio > SLOWS, line) for ratio, line in slows]),
        judged("mice does not",
               [(None if ratio is None else 1 / SLOWS < ratio < SLOWS, line) for ratio, line in stays]),
    ])  # fmt: skip


def growth(summary: Summary, cell: Cell, row: str) -> tuple[float | None, str]:
    small, large = summary.at(Cell("k10", cell.mechanism, cell.percent), row), summary.at(cell, row)
    name = f"{cell.mechanism} {cell.percent} %, {titles()[row]}"
    if not (small.complete and large.complete):
        return None, f"{name}: not run"
    ratio = large.mean("seconds") / small.mean("seconds")
    return ratio, f"{name}: {ratio:.2f} times the seconds"


def everywhere(summary: Summary, row: str, score: str) -> list[tuple[Cell, str]]:
    """For each cell: whether this row is the most accurate, and if not, who is and by how much."""
    found = []
    for cell in sorted({cell for cell, name in summary.entries if name == row}):
        if not summary.at(cell, row).complete:
            continue
        ahead = summary.behind(cell, row, contestants(), score)
        if not ahead:
            found.append((cell, "best, or within one standard error of it"))
            continue
        gaps = [f"{titles()[other]} by {-gap.mean:.3f} ± {gap.error:.3f}" for other, gap in ahead.items()]
        found.append((cell, f"behind {', '.join(gaps)}"))
    return found


def rankings(summary: Summary) -> dict[str, list[tuple[Cell, str]]]:
    """How our own rows do against every other method, under a heading each."""
    return {
        "KPOD's default against every other method, adjusted Rand score": everywhere(
            summary, "default", "ari"
        ),
        'KPOD with missingness="auto" against every other method, Rand score': everywhere(
            summary, "auto", "rand"
        ),
    }


def as_text(claims: list[Claim], ranked: dict[str, list[tuple[Cell, str]]], *, markdown: bool = False) -> str:
    """The verdicts, with the cells that decide them."""
    head: Callable[[str], str] = (lambda text: f"### {text}") if markdown else (lambda text: text)
    lines = []
    for claim in claims:
        lines += [head(f"Claim {claim.number}: {claim.verdict}"), "", claim.text, ""]
        for part in claim.parts:
            verdict = f"**{part.verdict}**" if markdown else part.verdict
            lines.append(f"- {verdict}: {part.text}")
            lines += [f"  - {line}" for line in part.cells]
        lines.append("")
    for heading, found in ranked.items():
        lines += [head(heading), "", *([f"- {cell}: {text}" for cell, text in found] or ["- not run"]), ""]
    return "\n".join(lines)
