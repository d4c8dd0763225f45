"""Whatever meta says, it is a finding or nothing: verify doesn't fall over it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reelseek.care.verify import verify_dataset
from tests.datasets import makers
from tests.datasets.test_mutations import COLUMNS, mutate

quick = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
JSON = ("info.json", "episodes.jsonl", "tasks.jsonl", "modality.json")
TABLES = (
    "meta/tasks.parquet", "meta/episodes/chunk-000/file-000.parquet",
    "data/chunk-000/file-000.parquet",
)  # fmt: skip


@pytest.fixture(scope="module")
def scratch(
    sound_roots: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Copies whose changed file each example puts back."""
    folder = tmp_path_factory.mktemp("mutated")
    return {name: Path(shutil.copytree(root, folder / name)) for name, root in sound_roots.items()}


def check(root: Path) -> None:
    report = verify_dataset(root)
    json.dumps(report.document())
    assert not [finding for finding in report.findings if finding.code == "check-failed"]


@quick
@given(data=st.data(), name=st.sampled_from(JSON), version=st.sampled_from(["v2.1", "v3.0"]))
def test_any_json(scratch: dict[str, Path], data: Any, name: str, version: str) -> None:
    path = scratch[version] / "meta" / name
    before = path.read_bytes() if path.exists() else b'{"action": {"all": {"start": 0, "end": 2}}}'
    lines = [json.loads(line) for line in before.splitlines() if line.strip()]
    mutate(data, lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    try:
        check(scratch[version])
    finally:
        path.write_bytes(before)


@quick
@given(data=st.data(), values=COLUMNS, name=st.sampled_from(TABLES))
def test_any_column(scratch: dict[str, Path], data: Any, values: Any, name: str) -> None:
    path = scratch["v3.0"] / name
    before = path.read_bytes()
    table = pq.read_table(path, partitioning=None)
    column = data.draw(st.sampled_from(table.column_names))
    pq.write_table(makers.with_column(table, column, values(table.num_rows)), path)
    try:
        check(scratch["v3.0"])
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("value", [[0], {"a": 1}, None, 1.5, "0", 10**400])
def test_task_index_that_is_no_number(scratch: dict[str, Path], value: Any) -> None:
    path = scratch["v2.1"] / "meta/tasks.jsonl"
    before = path.read_bytes()
    path.write_text(json.dumps({"task_index": value, "task": "stack"}) + "\n")
    report = verify_dataset(scratch["v2.1"])
    path.write_bytes(before)
    assert {finding.code for finding in report.findings} == {"meta-unreadable"}
