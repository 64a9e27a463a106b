"""kpod fit: from a table to its clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kpod.cli.options import (
    Text,
    analysis_options,
    checkpoint,
    choosing,
    clusters,
    in_files,
    labelling,
    long_form,
    max_seconds,
    opened,
    out_file,
    preparing,
    reading,
    shape,
)
from kpod.cli.outputs import check_label, check_outputs, check_types, command_line, output_for, say, written

if TYPE_CHECKING:
    from kpod._analysis.analysis import Analysis


@click.command()
@in_files("data")
@clusters("The number of clusters, a range to choose from such as 2-8, or auto.")
@labelling
@out_file(
    "--centers",
    help="Write the centers, in the original units, with the number of observed entries behind each value; "
    "for columns in --log, the mean of the logarithms, transformed back.",
)
@out_file("--model", help="Write the model, for kpod predict and kpod impute.")
@out_file("--report", help="Write a report, one HTML file to open, print or send.")
@click.option(
    "--report-rows/--no-report-rows",
    default=True,
    help="Whether the report contains the names and values of its rows (at most 2,000), so that readers can "
    "see who is in a cluster.  [default: yes]",
)
@choosing
@preparing
@long_form
@reading
@click.option(
    "--algorithm",
    type=click.Choice(["hartigan", "lloyd", "mm"]),
    default="hartigan",
    show_default=True,
    help="hartigan reaches the lowest loss; mm is the published algorithm.",
)
@click.option(
    "--starts",
    type=click.IntRange(min=1),
    help="Number of starts; the best is kept.  [default: 10, on a sample of the rows if more than a "
    "million entries are observed; 1 for ratings of that size]",
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
@shape
@max_seconds
@checkpoint
@click.option(
    "--missingness",
    type=click.Choice(["ignore", "informative", "auto"]),
    default="ignore",
    show_default=True,
    help="Whether to use which values are missing (informative missingness, MNAR): ignore it, use it, or "
    "let auto decide.",
)
@click.option(
    "--stability",
    "with_stability",
    is_flag=True,
    help="Also cluster 50 resampled tables and report which clusters are stable; takes as long as about "
    "15 fits. Always included in reports on small tables.",
)
@click.option(
    "--outcome",
    metavar="NAME",
    type=Text(),
    help="Column that is not clustered, but compared between the clusters, with confidence intervals.",
)
@click.option(
    "--verdict/--no-verdict",
    default=True,
    help="Whether to repeat the analysis under other choices (logarithms, robust scales, rows or columns "
    "left out) and report how many of them give the same clusters.  [default: yes]",
)
def fit(
    data: tuple[str, ...],
    output: str | None,
    label: str,
    quiet: bool,
    log_json: bool,
    as_json: bool,
    confidence: bool,
    centers: str | None,
    model: str | None,
    report: str | None,
    report_rows: bool,
    with_stability: bool,
    verdict: bool,
    **options: Any,
) -> None:
    """Cluster the rows of DATA: CSV or other text, Excel, SPSS, Stata, SAS, JSON, Parquet or Arrow.

    Several files, a folder, a pattern or a URL (s3://bucket/folder) are read as one table; all files need the
    same columns. Folders such as year=2024 become columns; a Delta table is read at its current version.

    Empty cells and NA, NaN, null, ? and the like count as missing; the markers found are reported.
    Numbers and yes/no columns are clustered; identifiers, dates, categories and text are not, but are kept
    in the output. Columns are standardised over their observed entries unless --no-scale. Use - as DATA
    to read standard input.

    The number of clusters is chosen unless -k gives it. Clusters are those of k-means or, if groups are not
    round, of a Gaussian mixture; --shape round means k-means throughout.

    \b
    Examples:
      kpod fit data.csv > clusters.csv
      kpod fit data.csv -k 3 -o clusters.parquet --report report.html --model wine.kpod
      kpod fit survey.csv -k 5 --missing -9 --missing 999 --exclude weight --id person
      zcat data.csv.gz | kpod fit - -k 3 --json -o clusters.csv | jq .clusters
      kpod fit s3://bucket/year=2024/ -k 20 -o labelled/ --log-json 2> progress.jsonl
      kpod fit folder/ -k 20 --scratch /data/scratch --checkpoint /data/kept -o clusters.parquet
    """
    output = output_for(output, as_json)
    check_outputs({"data": data}, {"-o": output, "--centers": centers, "--model": model, "--report": report})
    from kpod._analysis.analyze import analyze
    from kpod.cli.progress import Progress

    with (
        Progress(quiet, log_json, introduces=not as_json) as progress,
        opened(data, options, progress) as table,
    ):
        check_label(table, label, confidence)
        check_types(table, output, confidence)
        analysis = analyze(
            table, probability=confidence, verdict=verdict, progress=progress, **analysis_options(options)
        )
        if confidence:
            _ = analysis.confidence
        if with_stability:
            _ = analysis.stability
        page = draw(analysis, progress, report_rows) if report else None
        summary = analysis.to_dict()
        progress(0, 0, "writing")
        if centers:
            analysis.write_centers(centers, label=label)
        if model:
            analysis.save(model)
        if page is not None:
            page.save(str(report))
        if output:  # last: what has gone down a pipe cannot be taken back
            analysis.write(output, label=label, confidence=confidence)
    say(summary, quiet, as_json, written(output, centers, model, report), progress.introduced)


def draw(analysis: Analysis, progress: Any, with_rows: bool = True) -> Any:
    progress(0, 0, "drawing the report")
    page = analysis.report(settings={"command": command_line()}, with_rows=with_rows)
    _ = page.html  # while what goes on is shown
    return page
