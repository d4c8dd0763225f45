"""Reading a dataset's own files, none of which is trusted.

Path templates are filled by field name only, and the result must stay inside the dataset.
"""

from __future__ import annotations

import functools
import json
import os
import re
import reprlib
import stat
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reelseek.errors import DatasetFormatError, DatasetNotFoundError, UnsafePathError

MAX_JSON_BYTES = 256 * 1024 * 1024
MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
MAX_COUNT = 2**53
"""More episodes, rows or frames than this is damage; sums of a few such numbers fit 64 bits."""
PLAIN_FORMAT = re.compile(r"(0?\d{0,2}d?)?", re.ASCII)
HARMLESS_PATH = re.compile(r"(\w[\w.-]*/)*\w[\w.-]*", re.ASCII)
"""A path that is short, relative and normal as it stands, as nearly all are."""
LFS_START = "version https://git-lfs"
LFS_FAULT = "a Git LFS pointer, not the file itself"
LFS_REMEDY = "Run `git lfs pull` in the dataset's folder"

_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = _brief.maxlong = 120


def brief(value: Any) -> str:
    """A value from a dataset's file, for an error's text: cut where it is long or deep."""
    return _brief.repr(value)


def check_is_file(path: Path, folder: str = "meta") -> int:
    """The size in bytes of a regular file.

    Args:
        path: The file.
        folder: Which of the dataset's folders to copy again, for errors.

    Raises:
        DatasetNotFoundError: There is no such file.
        DatasetFormatError: It is a folder, device or pipe.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as exc:
        raise DatasetNotFoundError(
            "a file of the dataset is missing",
            remedy=f"Copy or download the dataset's {folder} folder again",
            path=path,
            detail=getattr(exc, "strerror", None) or str(exc),
        ) from exc
    if not stat.S_ISREG(status.st_mode):
        raise DatasetFormatError(
            "a folder, device or pipe stands where a file is meant",
            remedy=f"Copy or download the dataset's {folder} folder again",
            path=path,
        )
    return status.st_size


def read_bytes(path: Path, most: int, folder: str = "meta") -> bytes:
    """A regular file of at most so many bytes.

    Raises:
        DatasetNotFoundError: There is no such file, or it can't be read.
        DatasetFormatError: It is too large, or no file.
    """
    size = check_is_file(path, folder)
    if size > most:
        raise DatasetFormatError(
            f"the file has {size:,} bytes, and at most {most:,} are read", path=path
        )
    try:
        return path.read_bytes()
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _unreadable(path: Path, exc: OSError) -> DatasetNotFoundError:
    return DatasetNotFoundError(
        "the file can't be read",
        remedy="Check its permissions, and that the disk or NAS is mounted",
        path=path,
        detail=exc.strerror or "",
    )


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds one object.

    Raises:
        DatasetNotFoundError: There is no such file.
        DatasetFormatError: It is no JSON object.
    """
    return _object(path, _text(path), "the file")


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file that holds one on each line.

    Only a line feed ends a line: texts may hold other separators, such as U+2028.
    """
    for number, line in enumerate(_text(path).split("\n"), 1):
        if line.strip():
            yield _object(path, line, f"line {number}")


def check_json_lines(path: Path) -> None:
    """Read a file of one object on each line without keeping it: it may be of any size.

    Raises:
        DatasetNotFoundError: There is no such file, or it can't be read.
        DatasetFormatError: A line is no JSON object, or longer than files are read.
    """
    check_is_file(path)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_JSON_BYTES), b""), 1):
                text = _decoded(line, path)
                if text.strip():
                    _object(path, text, f"line {number}")
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _text(path: Path) -> str:
    return _decoded(read_bytes(path, MAX_JSON_BYTES), path)


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise DatasetFormatError(
            "not text", remedy="Copy the file again from its source", path=path, detail=str(exc)
        ) from exc


def _object(path: Path, text: str, where: str) -> dict[str, Any]:
    if text.startswith(LFS_START):
        raise DatasetFormatError(LFS_FAULT, remedy=LFS_REMEDY, path=path)
    remedy = "Copy the file again from its source"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise DatasetFormatError(
            f"{where} is not JSON", remedy=remedy, path=path, detail=str(exc)
        ) from exc
    if not isinstance(value, dict):
        raise DatasetFormatError(f"{where} holds no JSON object", remedy=remedy, path=path)
    return value


def whole_number(
    value: Any, name: str, path: Path, *, least: int = 0, most: int = MAX_COUNT
) -> int:
    """A number from a dataset's file, checked.

    Raises:
        DatasetFormatError: It is not a whole number in the range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise DatasetFormatError(
            f"{name} is {brief(value)}, which is no whole number from {least} to {most}",
            remedy="Copy the file again from its source, or correct it",
            path=path,
        )
    return value


def fill_template(root: Path, template: str, source: Path, **values: object) -> Path:
    """A path inside the dataset from a template such as ``videos/{video_key}/{i:03d}.mp4``.

    Symbolic links are followed when the file is opened, as a downloaded dataset may consist of
    them.

    Args:
        root: The dataset's folder.
        template: The template, from a file that isn't trusted.
        source: The file that it comes from, for errors.
        values: The fields that it may name.

    Raises:
        UnsafePathError: It names another field, reaches into a field, formats in an unusual way,
            or leads out of the root.
    """
    if len(template) > MAX_PATH_BYTES:
        raise _unsafe(template, f"has {len(template)} characters", values, source)
    try:
        parts = _parts_of(template)
    except ValueError as exc:
        raise _unsafe(template, "is no template", values, source) from exc
    filled = "".join(
        literal + _filled(template, name, spec, conversion, values, source)
        for literal, name, spec, conversion in parts
    )
    return inside(root, filled, lambda fault: _unsafe(template, fault, values, source))


@functools.lru_cache(16)
def _parts_of(template: str) -> tuple[tuple[str, str | None, str | None, str | None], ...]:
    """A template's texts, each with the field that follows it."""
    return tuple(string.Formatter().parse(template))


def plain_path(root: Path, name: str, source: Path) -> Path:
    """A path inside the dataset from one that a file of it gives, relative to the root.

    Raises:
        UnsafePathError: It leads out of the root.
    """
    return inside(
        root,
        name,
        lambda fault: UnsafePathError(
            f"the path {brief(name)} {fault}",
            remedy="It must be relative to the dataset's folder and stay inside",
            path=source,
        ),
    )


def inside(root: Path, name: str, unsafe: Any) -> Path:
    """``root / name``, or the error that ``unsafe`` makes of what is wrong with the name."""
    if len(name) < MAX_NAME_BYTES and HARMLESS_PATH.fullmatch(name):
        return root / name
    relative = Path(os.path.normpath(name))
    if relative.is_absolute() or relative.parts[:1] in ((), ("..",)):
        raise unsafe(f"leads out of the dataset, to {brief(name)}")
    try:
        sizes = [len(os.fsencode(part)) for part in relative.parts]
    except UnicodeEncodeError as exc:
        raise unsafe(f"gives no path: {brief(name)}") from exc
    if "\0" in name or max(sizes) > MAX_NAME_BYTES or sum(sizes) > MAX_PATH_BYTES:
        raise unsafe(f"gives no path: {brief(name)}")
    return root / relative


def _filled(
    template: str,
    name: str | None,
    spec: str | None,
    conversion: str | None,
    values: dict[str, object],
    source: Path,
) -> str:
    if name is None:
        return ""
    if name not in values or conversion or not PLAIN_FORMAT.fullmatch(spec or ""):
        field = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
        raise _unsafe(template, f"has the field {{{brief(field)[1:-1]}}}", values, source)
    try:
        return format(values[name], spec or "")
    except ValueError as exc:
        raise _unsafe(template, f"formats {{{name}}} as {spec!r}", values, source) from exc


def _unsafe(template: str, fault: str, values: dict[str, object], source: Path) -> UnsafePathError:
    return UnsafePathError(
        f"the path template {brief(template)} {fault}",
        remedy=f"It may name {', '.join(sorted(values))} and must stay inside the dataset",
        path=source,
    )
