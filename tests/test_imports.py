"""Imports go one way, which CONTRIBUTING.md says."""

from __future__ import annotations

import re

from tests.conftest import REPOSITORY

SOURCES = REPOSITORY / "src" / "reelseek"
IMPORT = re.compile(r"^\s*(?:from|import) reelseek\.(\w+)", re.MULTILINE)


def ranks() -> dict[str, int]:
    """How far each part is from the one that nothing imports."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    line = re.search(r"Imports go one way: `([^`]+)`", text)
    assert line is not None
    return {
        part: rank
        for rank, parts in enumerate(line[1].split("->"))
        for part in re.findall(r"\w+", parts)
    }


def test_every_part_has_its_place() -> None:
    folders = {path.name for path in SOURCES.iterdir() if (path / "__init__.py").exists()}
    assert folders <= ranks().keys()


def test_imports_go_one_way() -> None:
    order, wrong = ranks(), []
    for path in sorted(SOURCES.rglob("*.py")):
        part = path.relative_to(SOURCES).parts[0].removesuffix(".py")
        for imported in IMPORT.findall(path.read_text()):
            is_ranked = part in order and imported in order and part != imported
            if is_ranked and order[imported] <= order[part]:
                wrong.append(f"{path.relative_to(SOURCES)} imports {imported}")
    assert wrong == []
