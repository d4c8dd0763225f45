"""``reelseek verify``: is a dataset sound, and if not, what is wrong and what mends it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reelseek.cli._executor import Where, takes_executor
from reelseek.cli._options import listed

if TYPE_CHECKING:
    from rich.console import RenderableType

    from reelseek.care.verify import Finding, VerifyReport

EXAMPLES = 3
"""Places that a row of several findings names."""
STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


@takes_executor
def verify(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's folder.")],
    where: Where,
    level: Annotated[
        str,
        typer.Option(metavar="quick|decode", help="decode also decodes every frame."),
    ] = "quick",
    ignore: Annotated[
        str, typer.Option(metavar="CODES", help="Findings to leave out, with commas.")
    ] = "",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit status 1 for warnings too.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="A row for each finding, not one for each kind.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Look into all files again, unchanged ones too.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document (reelseek.verify/1).")
    ] = False,
) -> None:
    """Find what is wrong with a dataset: files, frame counts, times, pictures, columns, meta.

    quick reads meta, the parquet columns and each video's index. decode also decodes all videos.
    A run that is stopped goes on where it was; after decode, the next one looks only into files
    that were changed since. With --executor slurm or ray a cluster's tasks do the work.

    Exit status 0 where nothing is an error (with --strict: or a warning), else 1.
    """
    from reelseek.care.verify import LEVELS, Severity, verify_dataset
    from reelseek.cli._console import counted_bar, show, show_json

    if level not in LEVELS:
        raise typer.BadParameter(f"no level {level!r}; choose from: {', '.join(LEVELS)}")
    codes = _codes(ignore)
    with counted_bar("verifying") as tell:
        report = verify_dataset(
            dataset,
            level=level,  # type: ignore[arg-type]
            executor=where.make(),
            is_fresh=fresh,
            tell=tell,
        )
    report = report.without(codes)
    if as_json:
        show_json(report.document())
    else:
        show(*rendered(report, every=every))
    if not report.is_sound or (strict and report.count(Severity.WARNING)):
        raise typer.Exit(1)


def _codes(text: str) -> list[str]:
    """Codes with commas; a usage error for one that isn't known."""
    from reelseek.care.verify import CODES

    unknown = [code for code in listed(text) if code not in CODES]
    if unknown:
        raise typer.BadParameter(f"no finding {unknown[0]!r}; choose from: {', '.join(CODES)}")
    return listed(text)


def rendered(report: VerifyReport, *, every: bool = False) -> list[RenderableType]:
    """A report as lines and a table; what comes from the dataset stays text."""
    from rich.text import Text

    from reelseek.native._printable import printable

    kept = f", {report.num_kept} of them unchanged since an earlier run" if report.num_kept else ""
    frames = "frames decoded" if report.level == "decode" else "frames in their indexes"
    lines: list[RenderableType] = [
        Text(printable(report.root), style="bold"),
        Text(
            f"{report.num_episodes} episodes, {report.num_files} files{kept}, "
            f"{report.num_frames} {frames}, in {report.seconds:.1f} s"
        ),
    ]
    if report.findings:
        groups = [[f] for f in report.findings] if every else _groups(report.findings)
        lines += [Text(), _table(groups), Text(), *_remedies(report.findings)]
    return [*lines, _verdict(report)]


def _groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Those of one code together, in the order of the first."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.code, []).append(finding)
    return list(groups.values())


def _table(groups: list[list[Finding]]) -> Any:
    from rich.text import Text

    from reelseek.cli._console import new_table
    from reelseek.native._printable import printable

    table = new_table()
    for header in ("severity", "finding"):
        table.add_column(header, no_wrap=True)
    table.add_column("times", justify="right", no_wrap=True)
    table.add_column("what")
    table.add_column("where", overflow="fold")
    for group in groups:
        first = group[0]
        places = [printable(place) for place in dict.fromkeys(map(_place, group)) if place]
        more = len(places) - EXAMPLES
        where = "; ".join(places[:EXAMPLES]) + (f"; and {more} more" if more > 0 else "")
        severity = first.severity.value
        what = printable(first.what) + (", for one" if len(group) > 1 else "")
        table.add_row(
            Text(severity, style=STYLES[severity]), Text(first.code), str(len(group)),
            Text(what), Text(where),
        )  # fmt: skip
    return table


def _place(finding: Finding) -> str:
    """Where a finding is, as short as it can be."""
    parts = [finding.path or finding.camera]
    if finding.episode is not None and f"episode_{finding.episode:06d}" not in finding.path:
        parts.append(f"episode {finding.episode}")
    if finding.frames is not None:
        first, last = finding.frames
        parts.append(f"frame {first}" if first == last else f"frames {first} to {last}")
    return " ".join(filter(None, parts))


def _remedies(findings: Sequence[Finding]) -> list[RenderableType]:
    """What to do, once for each kind of error and warning."""
    from rich.text import Text

    from reelseek.native._printable import printable

    remedies = {f.code: f.remedy for f in reversed(findings) if f.severity.value != "note"}
    codes = dict.fromkeys(f.code for f in findings if f.code in remedies)
    lines = [Text(f"{code}: {printable(remedies[code])}.") for code in codes if remedies[code]]
    return [Text("What to do:", style="bold"), *lines, Text()] if lines else []


def _verdict(report: VerifyReport) -> RenderableType:
    from rich.text import Text

    from reelseek.care.verify._findings import ORDER

    counts = {severity.value: report.count(severity) for severity in ORDER}
    texts = [f"{count} {name}{'s' if count != 1 else ''}" for name, count in counts.items()]
    verdict = "The dataset is sound" if report.is_sound else "The dataset is not sound"
    return Text(f"{verdict}: {', '.join(texts)}.", style="green" if report.is_sound else "bold red")
