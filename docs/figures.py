"""Single figures and sentences of the docs, made from benchmarks/results and paper/results."""

from functools import cache

from benchmarks.harness import geometric_mean
from docs.tables import SMALL, figure, read_results, small_line


def between(values, form):
    """The least and the most, once if they look the same."""
    ends = [format(end, form) for end in (min(values), max(values))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


# benchmarks/results


def dense(gaps):
    """Time over that of KMeans on the complete table, the geometric mean over all shapes."""
    method = "KPOD(lloyd), complete" if gaps == "complete" else f"KPOD(lloyd), {gaps} missing"
    ratios = [float(line["time / KMeans"]) for line in read_results("dense") if line["method"] == method]
    return f"{geometric_mean(ratios):.2f}"


def small(method, column):
    """A cell of the paper's hardest simulated table."""
    return figure(small_line(method)[{"time": "time ratio"}.get(column, column)])


def small_times(method):
    """Times over those of KMeans on the complete table, over all designs."""
    lines = [line for line in read_results("small") if line["method"] == SMALL[method]]
    return between([float(line["time ratio"]) for line in lines], ".0f")


def mixed_speed(what):
    """Microseconds a row, and how many times as many KPrototypes takes."""
    ours, theirs = (float(line["us a row"]) for line in read_results("mixed-speed"))
    return {"kpod": f"{ours:.0f}", "kprototypes": f"{theirs:,.0f}", "ratio": f"{theirs / ours:.0f}",
            "seconds": f"{float(read_results('mixed-speed')[0]['seconds']):.1f}"}[what]  # fmt: skip


def heart(missing):
    """Adjusted Rand scores without categories and with them."""
    found = {line["method"]: line["ARI"] for line in read_results("mixed")
             if (line["design"], line["missing"]) == ("heart", missing)}  # fmt: skip
    return f"{figure(found['KPOD, numbers only'])} to {figure(found['KPOD, TableEncoder'])}"


def mixture_behind():
    behind = [
        f"{line['table']} ({figure(line['shape auto'])} against {figure(line['KPOD'])})"
        for line in read_results("mixture")
        if float(line["shape auto"]) < float(line["KPOD"])
    ]
    return "It is behind `KPOD` in: " + "; ".join(behind) + "."


def without_possums():
    """Mean gain on tables that the rule was not made on, the one left out that carries much of it."""
    gains = {}
    for line in read_results("shape_real"):
        if line["rule made on it"] == "no" and line["table"] != "possums":
            gains.setdefault(line["gaps"], []).append(float(line["gain"]))
    *first, last = [f"{sum(values) / len(values):.3f}" for values in gains.values()]
    return f"{', '.join(first)} and {last}"


def shape_worse():
    lines = read_results("shape_real")
    worse = [line for line in lines if float(line["gain"]) < -0.05]
    cells = [f"{line['table']}, {line['gaps']} ({figure(line['shape auto'])} against {figure(line['KPOD'])})"
             for line in worse]  # fmt: skip
    return f"{len(worse)} of {len(lines)} cells: {'; '.join(cells)}"


def iris(method):
    """Adjusted Rand score on iris with 30 % missing."""
    for line in read_results("mixture"):
        if line["table"] == "iris, 30 % missing":
            return figure(line[{"kpod": "KPOD", "auto": "shape auto"}[method]])
    raise KeyError(method)


def gaps_below(which):
    """How far "auto" is below "ignored", at most, in the mean over the tables of a design."""
    lines = read_results(f"gaps-{which}")
    return f"{max(0.0, *(float(line['ignored']) - float(line['auto']) for line in lines)):.2f}"


def gaps_lost():
    """The designs in which "auto" lost a table, with how many of how many."""
    lines = [line for line in read_results("gaps-misleading") if int(line["auto over .05 below ignored"])]
    total = lines[0]["auto uses them"].split(" of ")[1]
    *first, last = [f"{line['auto over .05 below ignored']} ({line['design']})" for line in lines]
    return f"{', '.join(first)} and {last} of {total} tables"


def gap_design(design, column):
    """A cell of the tables on gaps; blanks of a design are written as underscores."""
    for line in read_results("gaps-speaking") + read_results("gaps-misleading"):
        if line["design"] == design.replace("_", " "):
            return figure(line[column])
    raise KeyError(design)


def chosen():
    """How often the number of clusters was right, or said to be unclear, over all designs and draws."""
    lines = read_results("choose")
    draws = [int(line["draws"]) for line in lines]
    right = sum(n * float(line["right or unclear"]) for n, line in zip(draws, lines, strict=True))
    return f"{right:.0f} of {sum(draws)}"


def shipped(what):
    """kpodclustr and kmmeans, timed by hand: seconds, or how many times those of KPOD."""
    seconds = {line["program"]: float(line["seconds"]) for line in read_results("once/kpodclustr-shipped")}
    ours = seconds["`KPOD(25)`, ten starts"]
    theirs = {
        "kpodclustr": "kpodclustr as shipped",
        "kmmeans": "kmmeans (Lithio & Maitra, C, not on CRAN), ten starts",
    }
    return {
        "kpodclustr": f"{seconds[theirs['kpodclustr']]:.0f} s where kpod takes {ours} s",
        "kmmeans": f"{seconds[theirs['kmmeans']] / ours:.0f}",
    }[what]


def scales(which):
    """The labelled tables on which scales were compared, or those of them with columns that are changed."""
    lines = read_results("scales")
    changed = [line for line in lines if int(line["logarithms"]) or int(line["limits"])]
    return len({"tables": lines, "changed": changed}[which])


def real_tables(which):
    """What the first look at tables that no rule was made on had right, counted by hand-made labels."""
    lines = read_results("once/real-tables")
    looked_at = [line for line in lines if line["right"]]

    def total(name, among=looked_at):
        return sum(int(line[name] or 0) for line in among)

    mended = [line for line in lines if line["right after rules were mended"]]
    said = {
        "tables": len(lines),
        "refused": sum(line["refused"] == "wrongly" for line in lines),
        "columns": f"{total('columns'):,}",
        "right": f"{100 * total('right') / total('columns'):.1f} %",
        "used": total("wrongly used"),
        "left-out": total("wrongly left out"),
        "notes-wrong": total("row notes wrong", lines),
        "notes-missed": total("row notes missed", lines),
        "mended": f"{100 * total('right after rules were mended', mended) / total('columns', mended):.1f} %",
    }
    return said[which]


def new_tables(which):
    """The same for tables of other sources, which came later."""
    lines = read_results("once/new-tables")

    def total(name):
        return sum(int(line[name] or 0) for line in lines)

    columns, after = total("columns"), total("columns after rules were mended")
    said = {
        "tables": len(lines),
        "refused": sum(line["refused"] == "wrongly" for line in lines),
        "columns": f"{columns:,}",
        "right": f"{100 * total('right') / columns:.1f} %",
        "used": total("wrongly used"),
        "left-out": total("wrongly left out"),
        "ranks": total("ranks used beside their scores without a word"),
        "notes-wrong": total("notes wrong"),
        "mended": f"{100 * total('right after rules were mended') / after:.1f} %",
    }
    return said[which]


def of_verdicts(which):
    """The lines of tables that begin with a word; "3 groups" and "one group" begin with 3 and one."""
    lines = read_results("verdict")
    return [line for line in lines if which == "all" or which in line["table"].split()[:2]]


def verdict_right(which):
    """How often the verdict was right."""
    pairs = [map(int, line["right"].split(" of ")) for line in of_verdicts(which)]
    right, total = map(sum, zip(*pairs, strict=True))
    return f"{right} of {total}"


def verdict_said(which):
    """What the verdict said most often."""
    (line,) = of_verdicts(which)
    return line["said most often"]


# paper/results


@cache
def summary():
    from paper import results
    from paper.__main__ import RESULTS
    from paper.summary import Summary

    return Summary(results.read(RESULTS / "full.csv")[1])


def cells(tables, mechanisms):
    return [cell for table in tables.split(",") for mechanism in mechanisms.split(",")
            for cell in summary().cells(table, mechanism)]  # fmt: skip


def spread(row, tables, mechanisms, score):
    """Mean scores of a method, the least and the most over the cells that it completed."""
    entries = [summary().at(cell, row) for cell in cells(tables, mechanisms)]
    return between([entry.mean(score) for entry in entries if entry.complete], ".2f")


def ahead(row, other, tables, mechanisms, score):
    """By how much one method is ahead of another at most, over the trials that both have."""
    gaps = [summary().difference(cell, row, other, score) for cell in cells(tables, mechanisms)]
    return f"{max(gap.mean for gap in gaps if gap is not None):.2f}"


def behind_best(row, tables, mechanisms, score):
    """How far a method is behind the best at most, counting what is more than one standard error."""
    from paper.summary import contestants

    found = [summary().behind(cell, row, contestants(), score) for cell in cells(tables, mechanisms)]
    return f"{max(-gap.mean for gaps in found for gap in gaps.values()):.3f}"


def slower(row):
    """How many times the seconds of k-POD as published a method takes on wine."""
    found = [
        (summary().at(cell, "published"), summary().at(cell, row)) for cell in cells("wine", "MCAR,MAR,NMAR")
    ]
    ratios = [theirs.mean("seconds") / ours.mean("seconds") for ours, theirs in found
              if ours.complete and theirs.complete]  # fmt: skip
    return between(ratios, ".0f")


def left_empty(row, table, mechanism, percent):
    """Why a cell is empty, as the tables say it."""
    (cell,) = [cell for cell in summary().cells(table, mechanism) if cell.percent == int(percent)]
    return summary().at(cell, row).why_empty or "completed every trial"


def trials(row):
    """How many trials of wine a method has in each cell."""
    counts = [len(summary().at(cell, row).outcomes) for cell in cells("wine", "MCAR,MAR,NMAR")]
    return between([n for n in counts if n], ".0f")


def verdicts():
    """The claims of the paper, the verdict on each, and on each of its parts."""
    from docs.tables import markdown
    from paper.claims import check_claims

    rows = []
    for claim in check_claims(summary()):
        parts = {}
        for part in claim.parts:
            parts.setdefault(part.verdict, []).append(part.text.partition(" (theirs:")[0])
        said = "; ".join(f"{verdict}: {', '.join(texts)}" for verdict, texts in parts.items())
        rows.append([f"{claim.number}. {claim.text.rstrip('.')}", f"**{claim.verdict}**", said])
    return markdown(["claim of the paper's text", "verdict", "part by part"], rows)


FIGURES = {
    "ahead": ahead,
    "behind-best": behind_best,
    "chosen": chosen,
    "dense-time": dense,
    "empty": left_empty,
    "gaps-below": gaps_below,
    "gaps-design": gap_design,
    "gaps-lost": gaps_lost,
    "heart": heart,
    "iris": iris,
    "mixed-speed": mixed_speed,
    "mixture-behind": mixture_behind,
    "paper-verdicts": verdicts,
    "new-tables": new_tables,
    "real-tables": real_tables,
    "scales-tables": scales,
    "shape-worse": shape_worse,
    "shipped": shipped,
    "slower": slower,
    "small-cell": small,
    "small-times": small_times,
    "spread": spread,
    "trials": trials,
    "verdict": verdict_right,
    "verdict-said": verdict_said,
    "without-possums": without_possums,
}
