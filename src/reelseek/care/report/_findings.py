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


def findings_of(
    root: str | os.PathLike[str],
    level: Literal["quick", "decode"],
    tell: Callable[[int, int], None],
) -> Findings:
    """Verify a dataset, and group what is found.

    Args:
        root: The dataset's folder.
        level: As for ``verify_dataset``.
        tell: Told how many files are done, and of how many.

    Raises:
        DatasetNotFoundError: There is no dataset.
    """
    from reelseek.care.verify import verify_dataset

    return grouped(verify_dataset(root, level=level, tell=tell))


def grouped(report: VerifyReport) -> Findings:
    """The findings of a report by code: the worst and then the most frequent first."""
    from reelseek.care.verify import Severity

    order = [severity.value for severity in Severity]  # the worst first
    by_code: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_code.setdefault(finding.code, []).append(finding)
    groups = [_group(code, findings) for code, findings in by_code.items()]
    groups.sort(key=lambda group: (order.index(group.severity), -group.count, group.code))
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
