"""Templates and JSON files of a dataset that isn't trusted."""

from __future__ import annotations

import os
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reelseek.datasets._files import (
    HARMLESS_PATH,
    brief,
    fill_template,
    plain_path,
    read_bytes,
    read_json,
    read_json_lines,
    whole_number,
)
from reelseek.errors import DatasetFormatError, DatasetNotFoundError, UnsafePathError

ROOT = Path("/data/set")
SOURCE = ROOT / "meta/info.json"
V2 = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
V3 = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"


def filled(template: str, **values: Any) -> str:
    return str(fill_template(ROOT, template, SOURCE, **values))


def test_templates_of_every_version_are_filled() -> None:
    assert filled(V2, episode_chunk=1, video_key="a.b", episode_index=1234) == (
        "/data/set/videos/chunk-001/a.b/episode_001234.mp4"
    )
    assert filled(V3, video_key="a.b", chunk_index=0, file_index=12) == (
        "/data/set/videos/a.b/chunk-000/file-012.mp4"
    )


@pytest.mark.parametrize(
    ("template", "name"),
    [("{n}", "7"), ("{n:d}", "7"), ("{n:03d}", "007"), ("{n:3}", "  7"), ("{n:03}", "007"),
     ("{{{n}}}", "{7}"), ("a/../{n}", "7"), ("./{n}//x", "7/x"), ("{s}", "a{n}b")],
)  # fmt: skip
def test_plain_fields_are_formatted_as_python_does(template: str, name: str) -> None:
    assert filled(template, n=7, s="a{n}b") == f"/data/set/{name}"


@given(st.from_regex(HARMLESS_PATH, fullmatch=True) | st.text("a.-_/\n", min_size=1, max_size=8))
def test_harmless_paths_are_normal_as_they_stand(name: str) -> None:
    if HARMLESS_PATH.fullmatch(name):
        assert os.path.normpath(name) == name
        assert not name.startswith(("/", ".."))


PIECES = st.one_of(
    st.sampled_from(
        [
            "..",
            "/",
            ".",
            "../",
            "{key}",
            "{n}",
            "{n:03d}",
            "{key.__class__}",
            "{key[0]}",
            "{key!r}",
            "{n:099999d}",
            "{n:{n}}",
            "{{",
            "}}",
            "{",
            "}",
            "\0",
            "~",
            "//",
            "\\",
            "{}",
        ]
    ),
    st.text(max_size=8),
)


@given(
    pieces=st.lists(PIECES, max_size=8),
    key=st.lists(PIECES, max_size=4),
    n=st.integers(0, 2**53),
)
@example(pieces=["{key}"], key=["/etc/passwd"], n=0)
@example(pieces=["a/{key}"], key=["../../b"], n=0)
def test_no_template_leaves_the_root(pieces: list[str], key: list[str], n: int) -> None:
    try:
        path = fill_template(ROOT, "".join(pieces), SOURCE, key="".join(key), n=n)
    except UnsafePathError as error:
        assert error.remedy
        return
    assert ".." not in path.parts
    assert Path(os.path.normpath(path)).is_relative_to(ROOT)
    assert path != ROOT
    path.exists()  # a name that the system takes, whether or not there is such a file


@given(name=st.lists(PIECES, max_size=8).map("".join))
def test_no_plain_path_leaves_the_root(name: str) -> None:
    try:
        path = plain_path(ROOT, name, SOURCE)
    except UnsafePathError:
        return
    assert Path(os.path.normpath(path)).is_relative_to(ROOT)
    assert ".." not in path.parts
    path.exists()


@given(spec=st.text(st.sampled_from(string.printable), max_size=6))
def test_no_format_makes_a_long_name(spec: str) -> None:
    try:
        path = fill_template(
            ROOT, "{n:" + spec.replace("{", "").replace("}", "") + "}", SOURCE, n=5
        )
    except UnsafePathError:
        return
    assert len(str(path)) <= len(str(ROOT)) + 100


# JSON


@given(value=st.dictionaries(st.text(), st.integers() | st.text(), max_size=5))
def test_json_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any]
) -> None:
    import json

    folder = tmp_path_factory.getbasetemp()
    for ascii_only in (True, False):
        try:
            text = json.dumps(value, ensure_ascii=ascii_only)
            (folder / "a.json").write_text(text, "utf-8")
        except UnicodeEncodeError:  # a lone surrogate, which only an escape can write
            continue
        assert read_json(folder / "a.json") == value
        (folder / "a.jsonl").write_text(f"{text}\n\n{text}\r\n", "utf-8")
        assert list(read_json_lines(folder / "a.jsonl")) == [value, value]


def test_file_of_more_bytes_than_allowed_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(11))
    assert len(read_bytes(tmp_path / "a", 11)) == 11
    with pytest.raises(DatasetFormatError, match="11 bytes, and at most 10"):
        read_bytes(tmp_path / "a", 10)


def test_name_that_the_system_does_not_take_is_a_missing_file() -> None:
    for name in ("/" + "x" * 5000, "/a\0b", "/\ud800"):
        with pytest.raises(DatasetNotFoundError):
            read_bytes(Path(name), 10)


@pytest.mark.parametrize("value", [0, 7, 10])
def test_whole_number_in_the_range(value: int) -> None:
    assert whole_number(value, "n", SOURCE, most=10) == value


@pytest.mark.parametrize("value", [-1, 11, True, 1.0, "1", None, [1], float("nan")])
def test_anything_else_is_no_whole_number(value: Any) -> None:
    with pytest.raises(DatasetFormatError, match=r"n is .*no whole number from 0 to 10"):
        whole_number(value, "n", SOURCE, most=10)


@given(st.recursive(st.text() | st.integers(), st.lists, max_leaves=200))
def test_values_in_errors_are_short(value: Any) -> None:
    assert len(brief(value)) < 30_000


def test_deep_and_long_values_in_errors_are_cut() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert len(brief(deep)) < 100
    assert len(brief("x" * 10**6)) < 200
    assert len(brief(list(range(10**6)))) < 200
