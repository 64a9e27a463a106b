"""Tables of the docs, made from the files in benchmarks/results."""

import csv
from pathlib import Path

from benchmarks import mechanisms
from benchmarks.harness import geometric_mean
from docs import counts

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def read_results(name):
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def figure(text):
    """A number as the tables show it; what is no number stays as it is."""
    try:
        value = float(text)
    except ValueError:
        return text
    return (
        text if value.is_integer() and "." not in text else f"{value:.2f}" if value < 100 else f"{value:.0f}"
    )


def plain(name, header):
    """A results file as it is, under another header."""
    return markdown(header, [[figure(value) for value in line.values()] for line in read_results(name)])


DENSE = {
    "KMeans": "KMeans, complete",
    "elkan": "KMeans(elkan), complete",
    "intelex": "intelex KMeans, complete",
    "`lloyd`, complete": "KPOD(lloyd), complete",
    "`lloyd`, 30 % missing": "KPOD(lloyd), 30% missing",
    "default, 30 % missing": "KPOD(), 30% missing",
    "`lloyd`, 70 % missing": "KPOD(lloyd), 70% missing",
    "mean fill + KMeans, 30 % missing": "SimpleImputer + KMeans, 30% missing",
}


def dense_table():
    found, shapes = {}, {}
    for line in read_results("dense"):
        found[line["shape"], line["dtype"], line["method"]] = line
        shapes[line["shape"], line["dtype"]] = None

    def cell(shape, method):
        line = found.get((*shape, method))
        return f"{float(line['time / KMeans']):.2f} ({line['iterations']})" if line else "not installed"

    table = markdown(
        ["", "", *DENSE], [[*shape, *(cell(shape, method) for method in DENSE.values())] for shape in shapes]
    )
    means = [
        "",
        "",
        "| over all shapes | geometric mean | worst | geometric mean, over intelex |",
        "|---|---|---|---|",
    ]
    for title, method in list(DENSE.items())[4:7]:
        lines = [line for (*_, name), line in found.items() if name == method]
        ratios = [float(line["time / KMeans"]) for line in lines]
        intelex = [float(line["time / intelex"]) for line in lines if line["time / intelex"]]
        over = f"{geometric_mean(intelex):.2f}" if intelex else ""
        means.append(f"| {title} | {geometric_mean(ratios):.2f} | {max(ratios):.2f} | {over} |")
    return table + "\n".join(means)


def dense_quality_table():
    """Loss per observed entry, and adjusted Rand score, of what the times above bought."""
    found = {(line["shape"], line["dtype"], line["method"]): line for line in read_results("dense")}
    titles = {title: method for title, method in DENSE.items() if title not in ("elkan", "intelex")}
    rows = []
    for shape in dict.fromkeys(key[:2] for key in found):
        lines = [found[(*shape, method)] for method in titles.values()]
        rows.append([*shape, *(f"{float(line['loss']):.3f} ({float(line['ARI']):.2f})" for line in lines)])
    return markdown(["", "", *titles], rows)


def step_table():
    rows = [
        [*list(line.values())[:3], *(f"{float(share):.0%}" for share in list(line.values())[3:])]
        for line in read_results("step")
    ]
    return markdown(["", "", "missing", "of the arithmetic", "of the reading"], rows)


def auto_table():
    """A row for each table: what choosing costs, in fits, and two threads over one."""
    rows = [
        [
            line["table"],
            f"{float(line['auto, s']):.2g}",
            *(f"{float(line[name]):.0f}" for name in ("in fits", "gaps open too, in fits")),
            figure(line["two threads over one"]),
        ]
        for line in read_results("auto")
    ]
    header = ["table", "seconds", "in fits", "in fits, missingness open too", "two threads over one"]
    return markdown(header, rows)


def wine_table():
    """A row for each call, over scikit-learn's."""
    rows = [
        [line["call"], figure(line["kpod, ms"]), figure(line["KMeans, ms"]), figure(line["ratio"])]
        for line in read_results("small-wine")
    ]
    return markdown(["wine, 178 x 13", "kpod, ms", "KMeans, ms", "ratio"], rows)


def growth_table():
    names = {"n": "rows", "p": "columns", "k": "clusters"}
    rows = [
        [f"{int(line['to']):,} {names[line['doubled']]}", figure(line["time / half of it"])]
        for line in read_results("growth")
    ]
    return markdown(["doubled to", "time"], rows)


def starts_table():
    """A row for each table: the loss over that of ten starts on all rows, and the time over one start."""
    tables = {}
    for line in read_results("starts"):
        tables.setdefault(line["table"], {})[line["starts"]] = line
    header = ["", "one: loss (worst)", "sample: loss (worst)", "ten: loss", "sample: time", "ten: time"]
    rows = [
        [
            table,
            *(
                f"{float(by[way]['loss over ten']):.4f} ({float(by[way]['worst']):.3f})"
                for way in ("one", "sample")
            ),
            "1",
            *(f"{float(by[way]['time over one']):.1f}" for way in ("sample", "ten")),
        ]
        for table, by in tables.items()
    ]
    return markdown(header, rows)


def memory_table():
    rows = [[line["method"], f"{float(line['share of the table']):.0%}"] for line in read_results("memory")]
    return markdown(["", "share of the table"], rows)


def choose_table():
    header = ["table", "true", "draws", "right", "right, or no clear choice", "answers"]
    rows = [
        [line["design"], line["true"], line["draws"], f"{float(line['right']):.0%}",
         f"{float(line['right or unclear']):.0%}", line["chosen"]]
        for line in read_results("choose")
    ]  # fmt: skip
    return markdown(header, rows)


def choose_peers_table():
    """A row for each design, a column for each method: how often it was right, and what else it said."""
    designs = {}
    for line in read_results("choose_peers"):
        designs.setdefault((line["design"], line["true"]), {})[line["method"]] = line
    methods = list(dict.fromkeys(method for by in designs.values() for method in by))
    rows = [
        [
            *design,
            *(
                f"{float(by[method]['right']):.0%} ({by[method]['chosen']})" if method in by else "not run"
                for method in methods
            ),
        ]
        for design, by in designs.items()
    ]
    return markdown(["table", "true", *methods], rows)


def choose_gaps_table():
    header = ["table", "true", "gaps used", "answers", "adjusted Rand score", "the same, gaps ignored"]
    rows = [
        [
            line["design"],
            line["true"],
            f"{line['gaps used']} of {line['draws']}",
            line["chosen"],
            f"{float(line['ari']):.2f}",
            f"{float(line['ari, gaps ignored']):.2f}",
        ]
        for line in read_results("choose_gaps")
    ]
    return markdown(header, rows)


def choose_cost_table():
    rows = [
        [
            line["table"],
            *(f"{float(line[name]):.0f}" for name in ("ratio", "ratio, processor")),
            line["chosen"],
        ]
        for line in read_results("choose_cost")
    ]
    return markdown(["table", "time, in fits", "processor time, in fits", "chosen"], rows)


def confidence_table():
    lines = read_results("choose_confidence")
    rows = [
        [line["shares"], f"{float(line['accuracy']):.0%}", line["tables"],
         *(f"{float(line[name]):.3f}" for name in ("calibration error, mean", "largest",
                                                   "center error, k-means", "center error, mixture"))]
        for line in lines
    ]  # fmt: skip
    header = ["cluster shares", "accuracy", "tables", "calibration error", "largest",
              "error of `cluster_centers_`", "error of `mixture_centers_`"]  # fmt: skip
    return markdown(header, rows)


def calibration_table():
    header = ["clusters", "`KPOD`: accuracy", "calibration error", "said to be",
              "`GaussianMixture`: accuracy", "calibration error", "largest"]  # fmt: skip
    rows = [
        [
            line["clusters"],
            f"{float(line['KPOD, accuracy']):.0%}",
            figure(line["calibration error"]),
            figure(line["said"]) if float(line["warned"]) else "nothing said",
            f"{float(line['mixture, accuracy']):.0%}",
            figure(line["its calibration error"]),
            figure(line["largest"]),
        ]
        for line in read_results("calibration")
    ]
    return markdown(header, rows)


def mixture_table():
    header = ["table", "`KPOD`", "mixture", 'shape "auto"', "its error", "kept round", "times as long"]
    rows = [
        [
            line["table"],
            *(figure(line[name]) for name in ("KPOD", "mixture", "shape auto", "error")),
            line["kept round"],
            f"{float(line['times']):.0f}",
        ]
        for line in read_results("mixture")
    ]
    return markdown(header, rows)


def thousandths(name, header):
    """A results file with three decimals, where two would hide what is compared."""

    def cell(value):
        return f"{float(value):.3f}" if "." in value and value.replace(".", "").isdigit() else value

    return markdown(header, [[cell(value) for value in line.values()] for line in read_results(name)])


MIXED = {
    "numbers only": "KPOD, numbers only",
    "`TablePreparer`": "KPOD, TableEncoder",  # its name when this was run
    "KPrototypes": "KPrototypes, filled first",
    "StepMix": "StepMix, mixed",
}


def mixed_table():
    lines = read_results("mixed")
    cells = list(dict.fromkeys((line["design"], line["missing"]) for line in lines))
    found = {(line["design"], line["missing"], line["method"]): figure(line["ARI"]) for line in lines}
    header = ["", *(f"{design}, {missing.removesuffix('%')} % missing" for design, missing in cells)]
    return markdown(
        header, [[title, *(found[(*cell, method)] for cell in cells)] for title, method in MIXED.items()]
    )


def netflix_table():
    (line,) = read_results("netflix")
    header = ["ratings", "iterations and sweeps", "seconds each", "seconds in all", "peak GB resident", "ARI"]
    forms = [",.0f", ".0f", ".2f", ".0f", ".1f", ".2f"]
    return markdown(
        header, [[format(float(line[name]), form) for name, form in zip(header, forms, strict=True)]]
    )


def small_line(method, k="25", missing="75%"):
    for line in read_results("small"):
        if (line["k"], line["missing"], line["method"]) == (k, missing, SMALL[method]):
            return line
    raise KeyError(method, k, missing)


SMALL = {
    "kpod": "KPOD(), 10 starts",
    "hartigan": "hartigan, 1 start",
    "lloyd": "lloyd, 1 start",
    "mm": "mm as published, 1 start",
    "mean": "SimpleImputer + KMeans",
    "neighbours": "KNNImputer + KMeans",
    "iterative": "IterativeImputer(max_iter=1) + KMeans",
    "stepmix": "StepMix (Gaussian, gaps)",
    "kPOD": "PyPI kPOD 0.18",
}


def small_table(header, titles, columns):
    """Some methods on the paper's hardest simulated table."""
    lines = [(title, small_line(method)) for title, method in titles.items()]
    return markdown(header, [[title, *(figure(line[column]) for column in columns)] for title, line in lines])


def programs_table():
    titles = {
        "`KPOD(25)`, 10 starts": "kpod",
        "`KPOD(25, n_init=1)`": "hartigan",
        '`KPOD(25, algorithm="mm", init="mean-fill", n_init=1)`, as published': "mm",
        "KNNImputer, then KMeans, 10 starts": "neighbours",
        "SimpleImputer, then KMeans, 10 starts": "mean",
        "PyPI kPOD 0.18, 1 start": "kPOD",
    }
    header = ["", "time over `KMeans(25, n_init=10)` on the complete table", "loss", "adjusted Rand score"]
    return small_table(header, titles, ["time ratio", "loss", "ARI"])


def algorithms_table():
    titles = {"`mm`, mean-filled start as published": "mm", "`lloyd`": "lloyd", "`hartigan`": "hartigan"}
    return small_table(["", "loss", "adjusted Rand score"], titles, ["loss", "ARI"])


def kpodclustr_table():
    """What was timed by hand in R, beside KPOD on other draws of the same designs."""
    rows = []
    for line in read_results("once/kpodclustr"):
        ours = small_line("kpod", line["k"], line["missing"])
        rows.append(
            [
                f"k = {line['k']}, {line['missing'].removesuffix('%')} % missing",
                f"{line['seconds']} s, {line['loss']}, {float(line['ARI']):.2f}",
                f"{float(ours['loss']):.0f}, {float(ours['ARI']):.2f}",
            ]
        )
    theirs = "kpodclustr, six data sets: time, loss, ARI"
    return markdown(["design", theirs, "`KPOD()`, ten starts, 20 data sets: loss, ARI"], rows)


def command_line_table():
    rows = [
        [f"`{line['what']}`" if line["what"].startswith("kpod") else line["what"],
         f"{float(line['seconds']):.2g} s", line["against"], f"{float(line['ratio']):.2f}"]
        for line in read_results("command_line")
    ]  # fmt: skip
    return markdown(["", "time", "against", "ratio"], rows)


def fastest_table():
    lines = read_results("fastest")
    times = ("KMeans", "intelex", "faiss", "superkmeans", "kpod, 30% missing", "kpod, 70% missing")
    over = ("30% over the fastest", "70% over the fastest")
    rows = [
        [
            line["shape"],
            *(f"{float(line[name]):.2g}" if line[name] else "not installed" for name in times),
            *(f"{float(line[name]):.2f}" for name in over),
        ]
        for line in lines
    ]
    means = [f"{geometric_mean(float(line[name]) for line in lines):.2f}" for name in over]
    return markdown(["", *times, *over], [*rows, ["geometric mean", *[""] * len(times), *means]])


def sweep_table():
    """The worst cells, with the ratio of the times of one iteration beside that of the fits."""
    rows = []
    for line in read_results("sweep-worst"):
        iterations = [int(line[of]) for of in ("iterations", "of KMeans")]
        per_iteration = float(line["ratio"]) * iterations[1] / iterations[0]
        shape = f"{int(line['rows']):,} x {line['columns']}, k={line['clusters']}"
        times = (f"{float(line[of]):.3g}" for of in ("kpod, ms", "KMeans, ms"))
        rows.append([
            shape, f"{float(line['missing']):.0%}", *times, f"{float(line['ratio']):.2f}",
            " / ".join(map(str, iterations)), f"{per_iteration:.2f}",
        ])  # fmt: skip
    return markdown(
        ["", "missing", "kpod, ms", "KMeans, ms", "ratio", "iterations", "ratio for one iteration"], rows
    )


def polars_table():
    sides = ("kpod", "polars and KMeans")
    rows = [
        [line["of"], *(f"{float(line[side]):.2g}" for side in sides), f"{float(line['ratio']):.2f}"]
        for line in read_results("command_line-polars")
    ]
    return markdown(["", "`kpod fit`", "polars and KMeans", "ratio"], rows)


def raw(name, header):
    """A results file to the last digit, as it was written down."""
    return markdown(header, [list(line.values()) for line in read_results(name)])


def scales_table():
    """The mean adjusted Rand index with scale "standard" and "auto", and how many tables gain and lose."""
    lines = read_results("scales")
    rows = []
    for how in ("round", "any shape", "k left open"):
        before, after = ([float(line[f"{how}, {scale}"]) for line in lines] for scale in ("standard", "auto"))
        gains = [b - a for a, b in zip(before, after, strict=True)]
        one = max(range(len(gains)), key=gains.__getitem__)
        rest = (sum(gains) - gains[one]) / (len(gains) - 1)
        means = (f"{sum(of) / len(of):.3f}" for of in (before, after))
        better, worse = sum(gain > 0.05 for gain in gains), sum(gain < -0.05 for gain in gains)
        name = {"round": "round clusters", "k left open": "round, number left open"}.get(how, how)
        rows.append([name, *means, better, worse, f"{rest:+.3f} ({lines[one]['table']})"])
    header = [
        "",
        "standard",
        "auto",
        "better by 0.05",
        "worse by 0.05",
        "mean gain without the table that gains most",
    ]
    return markdown(header, rows)


GAPS = ["design", "ignored", "used", "auto", "auto uses them", "auto over .05 below ignored"]

TABLES = {
    "choose": choose_table,
    "choose-confidence": confidence_table,
    "choose-cost": choose_cost_table,
    "choose-gaps": choose_gaps_table,
    "choose-peers": choose_peers_table,
    "dense": dense_table,
    "dense-quality": dense_quality_table,
    "step": step_table,
    "growth": growth_table,
    "memory": memory_table,
    "starts": starts_table,
    "small": lambda: plain("small", ["k", "missing", "", "data sets", "time", "loss", "ARI"]),
    "cluster": lambda: plain(
        "cluster", ["rows", "p", "k", "threads: ms", "workers: ms", "more: ms", "same bits"]
    ),
    "spark": lambda: plain(
        "spark",
        [
            "rows",
            "p",
            "k",
            "sums: s",
            "packing: s",
            "over sums",
            "first iteration: s",
            "iteration: s",
            "MLlib: s",
            "over MLlib",
        ],
    ),
    "disk": lambda: plain("disk", ["", "seconds an iteration", "memory of its own: MB"]),
    "disk-cli": lambda: plain("disk-cli", ["", "seconds", "processor seconds", "memory of its own: MB"]),
    "places": lambda: plain(
        "places",
        ["", "seconds", "processor seconds", "of pyarrow's", "resident, of the numbers", "own memory: MB"],
    ),
    "places-bits": lambda: plain("places-bits", ["", "seconds", "processor seconds", "the same bits"]),
    "minibatch": lambda: plain(
        "minibatch",
        [
            "rows",
            "p",
            "k",
            "spread",
            "2 epochs",
            "worst",
            "then 2 passes",
            "mean-filled, scikit-learn's",
            "time",
            "with passes",
        ],
    ),
    "scale": lambda: plain(
        "scale",
        [
            "rows",
            "p",
            "k",
            "read: MB",
            "seconds",
            "over predicted",
            "merged: kB",
            "over predicted",
            "panel: kB",
        ],
    ),
    "scale-predicted": lambda: plain(
        "scale-predicted",
        ["entries", "p", "k", "machines", "GB each", "comparing: s", "merging: ms", "iteration: s"],
    ),
    "scale-held": lambda: plain(
        "scale-held",
        [
            "",
            "rows",
            "machines",
            "blocks",
            "GB each",
            "levels of the tree",
            "sent to a node: kB",
            "statistics: MB",
            "tasks: MB",
            "largest task: kB",
        ],
    ),
    "gaps-speaking": lambda: plain("gaps-speaking", GAPS),
    "gaps-misleading": lambda: plain("gaps-misleading", GAPS),
    "gap-speed": lambda: plain("gap_speed", ["", "assignment", "whole fit"]),
    "mechanisms": lambda: markdown(*mechanisms.table()),
    "sparse-speed": lambda: plain("sparse-speed", ["", "", "ratio"]),
    "sparse": lambda: plain("sparse", ["", "data sets", "time", "loss", "ARI"]),
    "tests": lambda: markdown(["what", "how many", "tests/"], counts.rows()),
    "choose-real": lambda: raw("once/choose-real", ["table", "rows", "answer"]),
    "damage": lambda: raw(
        "once/damage", ["format, written by", "read", "refused in one line", "most memory of the child"]
    ),
    "bounds": lambda: raw("once/bounds", ["bounds", "rows read", "distances"]),
    "levels": lambda: raw(
        "once/levels",
        ["full assignment", "10 columns, k=8", "20, k=10", "30, k=12", "50, k=50", "100, k=100"],
    ),
    "auto": auto_table,
    "small-wine": wine_table,
    "calibration": calibration_table,
    "mixture": mixture_table,
    "shape-real": lambda: thousandths(
        "shape_real-mean",
        ["gaps", "tables the rule was made on", "gain", "other tables", "gain", "worse by more than 0.05"],
    ),
    "shape-calibration": lambda: thousandths(
        "shape_real-calibration", ["clusters", "accuracy", "calibration error", "largest", "kept round"]
    ),
    "scales": scales_table,
    "scales-nulls": lambda: plain(
        "scales-nulls",
        ["one group", "one cluster, standard", "clearly several", "one cluster, auto", "clearly several"],
    ),
    "mixed": mixed_table,
    "netflix": netflix_table,
    "small-programs": programs_table,
    "small-algorithms": algorithms_table,
    "kpodclustr": kpodclustr_table,
    "kpodclustr-shipped": lambda: raw("once/kpodclustr-shipped", ["", "time: s", "loss", "ARI"]),
    "command-line": command_line_table,
    "command-line-polars": polars_table,
    "fastest": fastest_table,
    "sweep-worst": sweep_table,
    "budget": lambda: plain(
        "budget",
        ["rows x columns", "`-k 10 --shape round --no-verdict`", "all open but the shape", "all open"],
    ),
}
