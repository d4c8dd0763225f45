"""Whatever a dataset's files say, what comes out is a sample or a ReelseekError, and soon."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reelseek
from reelseek.errors import ReelseekError
from tests.datasets.makers import TOP, v2_data, v3_data, v3_episodes

SECONDS = 5
"""More than any of these tiny datasets takes to read or to refuse."""

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-3, 30),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        [
            "v2.0",
            "v2.1",
            "v3.0",
            "video",
            "image",
            "float32",
            "string",
            "../..",
            "/",
            "{x}",
            TOP,
            "data",
            "{episode_index}",
            "{video_key!r}",
            "{chunk_index:99}",
            "\0",
            "\ud800",
            "x" * 999,
        ]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    items: Any = ()
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    return [place for key, inner in items for place in ((value, key), *places(inner))]


def mutate(data: st.DataObject, value: Any) -> None:
    """Change, remove or add up to three things anywhere in a JSON value."""
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(value) or [({}, None)]))
        if isinstance(container, dict) and data.draw(st.integers(0, 4)) == 0:
            container.pop(key, None)
        elif isinstance(container, dict) or len(container) > key:
            container[key] = data.draw(VALUES)


def read_all(root: Path, **options: Any) -> None:
    """Read the first, the middle and the last sample; any ReelseekError is an answer."""
    start = time.process_time()
    try:
        ds = reelseek.open_dataset(root, output="numpy", backend="pyav", **options)
        str(ds), ds.keys, list(ds.episodes)
        for index in {0, len(ds) // 2, len(ds) - 1}:
            if 0 <= index < len(ds):
                ds[index]
    except ReelseekError as error:
        assert len(str(error)) < 20_000
    assert time.process_time() - start < SECONDS


@pytest.fixture(scope="module")
def scratch(roots: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copies to be changed, whose changed files each example writes anew."""
    folder = tmp_path_factory.mktemp("mutated")
    return {kind: Path(shutil.copytree(root, folder / kind)) for kind, root in roots.items()}


quick = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


@quick
@given(data=st.data(), kind=st.sampled_from(["v2.1", "v3.0", "gr00t", "images"]))
def test_any_info(roots: dict[str, Path], scratch: dict[str, Path], data: Any, kind: str) -> None:
    about = json.loads((roots[kind] / "meta/info.json").read_text())
    mutate(data, about)
    (scratch[kind] / "meta/info.json").write_text(json.dumps(about))
    read_all(scratch[kind], delta_indices={"*": [-1, 0, 1]})
    shutil.copy(roots[kind] / "meta/info.json", scratch[kind] / "meta/info.json")


@quick
@given(data=st.data(), name=st.sampled_from(["episodes.jsonl", "tasks.jsonl"]))
def test_any_line_of_meta(
    roots: dict[str, Path], scratch: dict[str, Path], data: Any, name: str
) -> None:
    good = (roots["v2.1"] / "meta" / name).read_text()
    lines = [json.loads(line) for line in good.splitlines()]
    mutate(data, lines)
    path = scratch["v2.1"] / "meta" / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    read_all(scratch["v2.1"])
    shutil.copy(roots["v2.1"] / "meta" / name, path)


@quick
@given(data=st.data())
def test_any_modality(roots: dict[str, Path], scratch: dict[str, Path], data: Any) -> None:
    about = json.loads((roots["gr00t"] / "meta/modality.json").read_text())
    mutate(data, about)
    path = scratch["gr00t"] / "meta/modality.json"
    path.write_text(json.dumps(about))
    read_all(scratch["gr00t"], keys="gr00t", delta_indices={"*": [0, 1]})
    shutil.copy(roots["gr00t"] / "meta/modality.json", path)


COLUMNS = st.sampled_from(
    [
        pa.nulls,
        lambda n: pa.array(["x"] * n),
        lambda n: pa.array([b"\xff"] * n),
        lambda n: pa.array([-1] * n),
        lambda n: pa.array([2**62] * n),
        lambda n: pa.array([0] * n, pa.uint8()),
        lambda n: pa.array([0.5] * n, pa.float16()),
        lambda n: pa.array([float("nan")] * n),
        lambda n: pa.array([[]] * n, pa.list_(pa.float32())),
        lambda n: pa.array([[[1, 2], [3]]] * n),
        lambda n: pa.array([["a"]] * n),
        lambda n: pa.array([{"bytes": b"x", "path": ".."}] * n),
        lambda n: pa.array([{"a": [1]}] * n),
        lambda n: pa.array(["x"] * n).dictionary_encode(),
        lambda n: pa.array([3] * n).dictionary_encode(),
        lambda n: pa.array([1] * n, pa.timestamp("us")),
        lambda n: pa.array([True] * n),
        lambda n: pa.array([None, *[1] * (n - 1)]) if n else pa.array([], pa.int64()),
    ]
)


@quick
@given(
    data=st.data(),
    column=COLUMNS,
    file=st.sampled_from(["v2 data", "v3 data", "v3 episodes", "v3 tasks"]),
)
def test_any_column(
    roots: dict[str, Path], scratch: dict[str, Path], data: Any, column: Any, file: str
) -> None:
    kind = "images" if file.startswith("v2") else "v3.0"
    good = {
        "v2 data": v2_data(roots[kind], 0),
        "v3 data": v3_data(roots[kind], 0),
        "v3 episodes": v3_episodes(roots[kind]),
        "v3 tasks": roots[kind] / "meta/tasks.parquet",
    }[file]
    table = pq.read_table(good, partitioning=None)
    name = data.draw(st.sampled_from(table.column_names))
    table = table.set_column(table.column_names.index(name), name, column(len(table)))
    bad = scratch[kind] / good.relative_to(roots[kind])
    pq.write_table(table, bad)
    read_all(scratch[kind], delta_indices={"*": [0, 1]} if data.draw(st.booleans()) else None)
    shutil.copy(good, bad)


@quick
@given(data=st.data(), file=st.sampled_from(["data", "episodes"]))
def test_any_damage_to_a_parquet_file(
    roots: dict[str, Path], scratch: dict[str, Path], data: Any, file: str
) -> None:
    name = (v3_data if file == "data" else v3_episodes)(Path(), 0)
    bad = bytearray((roots["v3.0"] / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    (scratch["v3.0"] / name).write_bytes(bad[: data.draw(st.integers(0, len(bad)))]
                                         if data.draw(st.booleans()) else bad)  # fmt: skip
    read_all(scratch["v3.0"])
    shutil.copy(roots["v3.0"] / name, scratch["v3.0"] / name)
