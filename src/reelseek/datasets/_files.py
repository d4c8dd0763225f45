"""Reading a dataset's own files, none of which is trusted.

Path templates are filled by field name only, and the result must stay inside the dataset.
"""

from __future__ import annotations

import json
import os
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reelseek.errors import DatasetFormatError, DatasetNotFoundError, UnsafePathError

MAX_JSON_BYTES = 256 * 1024 * 1024
PLAIN_FORMAT = re.compile(r"(0?\d{1,2}d?)?")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds one object.

    Raises:
        DatasetNotFoundError: There is no such file.
        DatasetFormatError: It is no JSON object.
    """
    return _object(path, _text(path), "the file")


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file that holds one on each line."""
    for number, line in enumerate(_text(path).splitlines(), 1):
        if line.strip():
            yield _object(path, line, f"line {number}")


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise DatasetFormatError(f"more than {MAX_JSON_BYTES} bytes of JSON", path=path)
        return path.read_text(encoding="utf-8")
    except OSError as exc:
        raise DatasetNotFoundError(
            "a file of the dataset is missing",
            remedy="Copy or download the dataset's meta folder again",
            path=path,
            detail=exc.strerror or "",
        ) from exc
    except UnicodeDecodeError as exc:
        raise DatasetFormatError("not text", path=path, detail=str(exc)) from exc


def _object(path: Path, text: str, where: str) -> dict[str, Any]:
    if text.startswith("version https://git-lfs"):
        raise DatasetFormatError(
            "a Git LFS pointer, not the file itself",
            remedy="Run `git lfs pull` in the dataset's folder",
            path=path,
        )
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise DatasetFormatError(f"{where} is not JSON", path=path, detail=str(exc)) from exc
    if not isinstance(value, dict):
        raise DatasetFormatError(f"{where} holds no JSON object", path=path)
    return value


def whole_number(value: Any, name: str, path: Path, *, least: int = 0, most: int = 2**53) -> int:
    """A number from a dataset's file, checked.

    Raises:
        DatasetFormatError: It is not a whole number in the range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise DatasetFormatError(
            f"{name} is {value!r}, which is no whole number from {least} to {most}", path=path
        )
    return value


def fill_template(root: Path, template: str, source: Path, **values: object) -> Path:
    """A path inside the dataset from a template such as ``videos/{video_key}/{i:03d}.mp4``.

    Args:
        root: The dataset's folder.
        template: The template, from a file that isn't trusted.
        source: The file that it comes from, for errors.
        values: The fields that it may name.

    Raises:
        UnsafePathError: It names another field, reaches into a field, formats in an unusual way,
            or leads out of the root.
    """
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as exc:
        raise _unsafe(template, "is no template", values, source) from exc
    filled = "".join(
        literal + _filled(template, name, spec, conversion, values, source)
        for literal, name, spec, conversion in parts
    )
    relative = Path(os.path.normpath(filled))
    if relative.is_absolute() or relative.parts[:1] in ((), ("..",)) or "\0" in filled:
        raise _unsafe(template, f"leads out of the dataset, to {filled!r}", values, source)
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
        raise _unsafe(template, f"has the field {{{name}}}", values, source)
    try:
        return format(values[name], spec or "")
    except ValueError as exc:
        raise _unsafe(template, f"formats {{{name}}} as {spec!r}", values, source) from exc


def _unsafe(template: str, fault: str, values: dict[str, object], source: Path) -> UnsafePathError:
    return UnsafePathError(
        f"the path template {template!r} {fault}",
        remedy=f"It may name {', '.join(sorted(values))} and must stay inside the dataset",
        path=source,
    )
