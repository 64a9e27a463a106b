"""Make what the docs take from the program: python -m docs.generate (or make docs)."""

import csv
import re
from pathlib import Path

from benchmarks import mechanisms
from benchmarks.harness import geometric_mean
from docs import counts
from kpod.cli import cli

HERE = Path(__file__).parent
WIDTH = 90


def context_of(command, name, parent=None):
    return command.make_context(name, [], parent, resilient_parsing=True, terminal_width=WIDTH)


def cli_reference():
    """docs/cli.md: the help of every command, as it is printed."""
    parts = [
        "# Command line reference\n\n"
        "Made from `kpod --help` by `make docs`; a test keeps it true. "
        "The [guide](command-line.md) says how things are used.\n"
    ]
    top = context_of(cli, "kpod")
    names = sorted(cli.list_commands(top))
    contexts = [top, *(context_of(cli.get_command(top, name), name, top) for name in names)]
    for context in contexts:
        text = context.command.get_help(context)
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        parts.append(f"## {context.command_path}\n\n```text\n{lines}\n```\n")
    return "\n".join(parts)


def make_pictures(folder):
    """The pictures of docs/pictures-and-report.md."""
    import matplotlib as mpl
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import kpod
    from kpod.datasets import load_incomplete_wine

    mpl.use("Agg")
    wine = load_incomplete_wine()
    model = make_pipeline(StandardScaler(), kpod.KPOD(3, random_state=0)).fit(wine.data)
    for name in kpod.plot.__all__:
        display = getattr(kpod.plot, name).from_estimator(model, wine.data, column_names=wine.feature_names)
        file = folder / f"{name.removesuffix('Display').lower()}.png"
        display.figure_.savefig(file, dpi=90, metadata={"Software": None})


def read_results(name):
    with (HERE.parent / "benchmarks" / "results" / f"{name}.csv").open(newline="") as file:
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
    "gaps-speaking": lambda: plain("gaps-speaking", GAPS),
    "gaps-misleading": lambda: plain("gaps-misleading", GAPS),
    "gap-speed": lambda: plain("gap_speed", ["", "assignment", "whole fit"]),
    "mechanisms": lambda: markdown(*mechanisms.table()),
    "sparse-speed": lambda: plain("sparse-speed", ["", "", "ratio"]),
    "sparse": lambda: plain("sparse", ["", "data sets", "time", "loss", "ARI"]),
    "tests": lambda: markdown(["what", "how many", "tests/"], counts.rows()),
}


def with_tables(page):
    """A page with the tables between its markers as `benchmarks/results` has them."""

    def fill(match):
        return f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}"

    return re.sub(r"(<!-- table: (\S+) -->)\n.*?\n(<!-- end -->)", fill, page, flags=re.S)


MEASURED = [
    "choosing.md",
    "gaps.md",
    "growing.md",
    "large.md",
    "places.md",
    "speed-engineering.md",
    "speed.md",
    "sparse.md",
    "testing.md",
]


def paper_pages():
    """What the full run of the paper's experiments came to: the tables, and the verdicts on its claims."""
    from paper import claims, results, tables
    from paper.__main__ import RESULTS
    from paper.datasets import designs
    from paper.summary import Summary

    summary = Summary(results.read(RESULTS / "full.csv")[1])
    sheets = tables.make_sheets(summary, list(designs()), ["rand", "ari", "seconds"])
    note = "Made from `paper/results/full.csv` by `make docs`; a test keeps it true. "
    note += "[What was run](paper.md).\n\n"
    verdicts = claims.as_text(claims.check_claims(summary), claims.rankings(summary), markdown=True)
    return {
        "paper-tables.md": f"# The paper's tables\n\n{note}{tables.as_markdown(summary, sheets)}",
        "paper-claims.md": f"# The paper's claims\n\n{note}{verdicts}",
    }


def make_paper_pictures(folder):
    """The pictures of docs/paper.md."""
    from paper.__main__ import main

    main(["plot", "--output", str(folder)])


if __name__ == "__main__":
    (HERE / "cli.md").write_text(cli_reference())
    for name in MEASURED:
        (HERE / name).write_text(with_tables((HERE / name).read_text()))
    make_pictures(HERE / "images")
    for name, text in paper_pages().items():
        (HERE / name).write_text(text)
    make_paper_pictures(HERE / "images")
