"""The error tree, and that importing reelseek is light."""

from __future__ import annotations

import ast
import builtins
import inspect
import pickle
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import reelseek
from reelseek import errors
from reelseek.errors import ReelseekError
from tests.patience import PATIENCE

HEAVY = (
    "torch",
    "torchcodec",
    "torchvision",
    "numpy",
    "av",
    "cv2",
    "decord",
    "typer",
    "rich",
    "pyarrow",
)
ALL_CLASSES = tuple(
    member
    for _name, member in inspect.getmembers(errors, inspect.isclass)
    if issubclass(member, ReelseekError)
)


def _drawn_tree() -> dict[str, str]:
    """Class -> builtin, as the module's docstring draws them."""
    drawn = re.findall(r"── (\w+Error)(?:\s+\((\w+)\))?", errors.__doc__ or "")
    return dict(drawn)


def _example(cls: type[ReelseekError]) -> ReelseekError:
    return cls(
        "the fault", remedy="Do this", path="/data/a.mp4", frame=7, byte_offset=9,
        backend="pyav", detail="its last word",
    )  # fmt: skip


def test_every_class_is_drawn_in_the_tree() -> None:
    assert {cls.__name__ for cls in ALL_CLASSES} == {"ReelseekError", *_drawn_tree()}


@pytest.mark.parametrize(("name", "builtin"), _drawn_tree().items())
def test_class_is_also_the_builtin_drawn_beside_it(name: str, builtin: str) -> None:
    cls = getattr(errors, name)
    assert issubclass(cls, getattr(builtins, builtin or "Exception"))


@pytest.mark.parametrize("cls", ALL_CLASSES)
def test_text_says_where_and_what_and_the_remedy(cls: type[ReelseekError]) -> None:
    assert str(_example(cls)) == (
        "/data/a.mp4, frame 7, byte 9, backend pyav: the fault (its last word). Do this"
    )


@pytest.mark.parametrize("cls", ALL_CLASSES)
def test_error_pickles_with_its_attributes(cls: type[ReelseekError]) -> None:
    error = _example(cls)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert vars(again) == vars(error)
    assert str(again) == str(error)


def test_text_without_a_place_is_the_fault_alone() -> None:
    assert str(ReelseekError("the fault")) == "the fault"


def test_frame_zero_and_byte_zero_are_places() -> None:
    assert str(ReelseekError("the fault", frame=0, byte_offset=0)) == "frame 0, byte 0: the fault"


def test_import_is_light() -> None:
    code = f"import sys, reelseek; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout.strip() == "[]"


def test_all_is_sorted_and_equals_the_public_names() -> None:
    public = {name for name in reelseek._MODULES if not name.startswith("_")}
    assert reelseek.__all__ == sorted(reelseek.__all__)
    assert set(reelseek.__all__) == public


def test_public_names_are_those_that_type_checkers_see() -> None:
    source = Path(reelseek.__file__).read_text()
    (block,) = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    seen = {
        name.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert seen == reelseek._MODULES


def test_public_names_are_imported_at_their_first_use() -> None:
    assert set(reelseek.__all__) <= set(dir(reelseek))
    for name in reelseek.__all__:
        assert getattr(reelseek, name) is getattr(import_module(reelseek._MODULES[name]), name)
    with pytest.raises(AttributeError, match="'reelseek' has no attribute 'open_vide0'"):
        reelseek.open_vide0  # noqa: B018


def test_modules_are_reachable_without_importing_them() -> None:
    code = "import reelseek; print(reelseek.errors.ReelseekError.__name__, reelseek.types.Frame)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout == "ReelseekError <class 'reelseek.types.Frame'>\n"
