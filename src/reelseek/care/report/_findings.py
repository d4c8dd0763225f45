"""What verify finds, grouped by code."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from reelseek.care.report._records import FindingGroup, Findings

if TYPE_CHECKING:
    from reelseek.care.verify import Finding, VerifyReport

Level = Literal["none", "quick", "decode"]
SHOWN = 5
"""Findings of one code that are shown; the others are counted."""
ORDER = ("error", "warning", "note")
"""The worst first."""


def findings_of(
    root: str | os.PathLike[str], level: Literal["quick", "decode"], tell: Callable[[str], None]
) -> Findings:
    """Verify a dataset, and group what is found.

    Raises:
        DatasetNotFoundError: There is no dataset.
    """
    from reelseek.care.verify import verify_dataset

    tell(f"verifying, level {level}")
    return grouped(verify_dataset(root, level=level, tell=_tenths(tell)))


def _tenths(tell: Callable[[str], None]) -> Callable[[int, int], None]:
    """Tells at each tenth of the way: a log shall not have a line for each file."""
    told = [0]

    def advance(done: int, total: int) -> None:
        if total and done * 10 // total > told[0]:
            told[0] = done * 10 // total
            tell(f"verifying: {done:,} of {total:,} files")

    return advance


def grouped(report: VerifyReport) -> Findings:
    """The findings of a report by code: the worst and then the most frequent first."""
    by_code: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_code.setdefault(finding.code, []).append(finding)
    groups = [_group(code, findings) for code, findings in by_code.items()]
    groups.sort(key=lambda group: (ORDER.index(group.severity), -group.count, group.code))
    return Findings(report.level, tuple(groups), report.num_files, report.seconds)


def _group(code: str, findings: list[Finding]) -> FindingGroup:
    first = findings[0]
    return FindingGroup(
        code=code,
        severity=first.severity.value,
        findings=tuple(findings[:SHOWN]),
        count=len(findings),
        remedy=first.remedy,
    )
