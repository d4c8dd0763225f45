"""The FFmpeg inside PyAV's wheel, made usable to programs that look for it by soname.

The wheel holds a whole FFmpeg under hashed names (``libavcodec-5e6b81c2.so.62.28.102``), which
nothing else can find. Copies of FFmpeg's own seven libraries get their usual sonames
(``libavcodec.so.62``) back and an RPATH to the wheel's folder for the codec libraries beside
them. The copies are made once per wheel, in the user's cache folder, by patchelf; the sizes of
the files are written beside them, and copies that aren't whole any more are made anew.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path

from filelock import FileLock, Timeout

from reelseek.errors import BackendUnavailableError
from reelseek.native._child import ChildError, run_child
from reelseek.native._known import ffmpeg_major_of_avutil
from reelseek.native._patchelf import find_patchelf

LOAD_ORDER = ("avutil", "swresample", "swscale", "avcodec", "avformat", "avfilter", "avdevice")
"""FFmpeg's libraries, each after those that it needs."""

HASHED_NAME = re.compile(r"lib(?P<name>[a-z]+)-[0-9a-f]{8}\.so\.(?P<major>\d+)[.\d]*")
PREPARE_TIMEOUT_SECONDS = 120
FOLDER_PREFIX = "ffmpeg-av"
SIZES = "sizes.json"
"""In a folder of copies: each file's size in bytes, by its name."""
MAX_SIZES_BYTES = 65536


class WheelRefusal(Enum):
    """Why the wheel's FFmpeg can't be had."""

    NO_WHEEL = "PyAV is absent, not from a wheel, or not whole"
    OTHER_MAJOR = "torchcodec is not built for the FFmpeg in it"
    NO_PATCHELF = "patchelf isn't installed"
    NO_PLACE = "the copies can't be written"
    NOT_PREPARED = "patchelf fails"


class WheelRefusedError(Exception):
    """The wheel's FFmpeg can't be had: the reason, and the error for people."""

    def __init__(self, refusal: WheelRefusal, what: str, *, remedy: str, detail: str = "") -> None:
        super().__init__(what)
        self.refusal = refusal
        self.error = BackendUnavailableError(
            what, remedy=remedy, backend="torchcodec", detail=detail
        )


def wheel_ffmpeg_folder() -> Path | None:
    """``av.libs`` of the installed PyAV wheel; None where PyAV is absent or not from a wheel."""
    spec = importlib.util.find_spec("av")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent.parent / "av.libs"
    return folder if folder.is_dir() else None


def wheel_ffmpeg_major(folder: Path) -> int:
    """The FFmpeg major in an ``av.libs`` folder; 0 where it has none."""
    for path in folder.glob("libavutil-*.so.*"):
        if match := HASHED_NAME.fullmatch(path.name):
            return ffmpeg_major_of_avutil(int(match["major"]))
    return 0


def prepare_wheel_ffmpeg(folder: Path | None = None, version: str = "") -> tuple[Path, ...]:
    """Copies of the wheel's FFmpeg under its usual sonames, made where they aren't there yet.

    Safe when many processes start at once: one of them makes the copies, by rename, and the
    others wait for it.

    Args:
        folder: ``av.libs`` of the wheel; this environment's where none is given.
        version: The wheel's version, where a folder is given.

    Returns:
        The libraries' paths in the order in which they have to be loaded.

    Raises:
        BackendUnavailableError: There is no wheel to take them from, or no patchelf.
    """
    source = folder or wheel_ffmpeg_folder()
    try:
        if source is None:
            raise no_wheel("Run `pip install --force-reinstall av`, or install FFmpeg 7")
        return prepared_copies(source, version or importlib.metadata.version("av"))
    except WheelRefusedError as exc:
        raise exc.error from exc.__cause__


def no_wheel(remedy: str) -> WheelRefusedError:
    """The refusal where there is no wheel to take an FFmpeg from."""
    return WheelRefusedError(
        WheelRefusal.NO_WHEEL,
        "no FFmpeg library for torchcodec: none on this system, and PyAV isn't installed from a "
        "wheel that carries one",
        remedy=remedy,
    )


def prepared_copies(source: Path, version: str, packages: Sequence[str] = ()) -> tuple[Path, ...]:
    """The same for the ``av.libs`` of a wheel and its version.

    Args:
        source: ``av.libs``.
        version: The wheel's.
        packages: The folders in which patchelf's wheel may be; ``sys.path`` without any.

    Raises:
        WheelRefusedError: They can't be had.
    """
    try:
        originals = _originals(source, version)
        key = _key(source, originals, version)
        target = _cache_folder() / f"{FOLDER_PREFIX}{key}"
        _make_once(originals, source, target, packages)
    except (OSError, Timeout) as exc:
        raise WheelRefusedError(
            WheelRefusal.NO_PLACE,
            "the copies of PyAV's FFmpeg that torchcodec needs can't be made",
            remedy="Set REELSEEK_CACHE to a folder that can be written to, or install FFmpeg 7",
            detail=str(exc),
        ) from exc
    return tuple(target / _soname(originals[name]) for name in LOAD_ORDER)


def is_folder_of_copies(folder: str) -> bool:
    """Whether copies of PyAV's FFmpeg lie in this folder, which only this machine has."""
    return os.path.basename(folder).startswith(FOLDER_PREFIX) and os.path.isfile(
        os.path.join(folder, SIZES)
    )


def _make_once(
    originals: Mapping[str, Path], source: Path, target: Path, packages: Sequence[str]
) -> None:
    if _is_whole(target, originals):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock", timeout=PREPARE_TIMEOUT_SECONDS):
        if not _is_whole(target, originals):
            _make_copies(originals, source, target, packages)


def _is_whole(target: Path, originals: Mapping[str, Path]) -> bool:
    """Whether every copy is there with the size that it was made with."""
    sizes = _sizes_made(target / SIZES)
    names = [_soname(path) for path in originals.values()]
    return all(_size(target / name) == sizes.get(name, -2) for name in names)


def _sizes_made(path: Path) -> dict[str, int]:
    if _size(path) < 0:
        return {}
    try:
        with path.open("rb") as file:
            sizes = json.loads(file.read(MAX_SIZES_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return sizes if isinstance(sizes, dict) else {}


def _size(path: Path) -> int:
    """A regular file's size; -1 for anything else."""
    try:
        status = path.stat()
    except OSError:
        return -1
    return status.st_size if stat.S_ISREG(status.st_mode) else -1


def _cache_folder() -> Path:
    chosen = os.environ.get("REELSEEK_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if base.startswith("~"):  # a container's user may have neither HOME nor a line in passwd
        raise FileNotFoundError("this user has no home folder")
    return Path(base) / "reelseek"


def _key(source: Path, originals: Mapping[str, Path], version: str) -> str:
    """Changes whenever the copies have to be made anew: other wheel, or other place."""
    names = "\n".join([str(source), *sorted(path.name for path in originals.values())])
    return f"{version}-{hashlib.sha256(os.fsencode(names)).hexdigest()[:12]}"


def _originals(source: Path, version: str) -> dict[str, Path]:
    found = {
        match["name"]: path
        for path in source.iterdir()
        if (match := HASHED_NAME.fullmatch(path.name)) and match["name"] in LOAD_ORDER
    }
    missing = [name for name in LOAD_ORDER if name not in found]
    if missing:
        wanted = f"av=={version}" if version else "av"
        raise WheelRefusedError(
            WheelRefusal.NO_WHEEL,
            f"PyAV's wheel has no lib{missing[0]} in {source}",
            remedy=f"Run `pip install --force-reinstall {wanted}`",
        )
    return found


def _soname(original: Path) -> str:
    match = HASHED_NAME.fullmatch(original.name)
    assert match is not None  # _originals lets nothing else through
    return f"lib{match['name']}.so.{match['major']}"


def _make_copies(
    originals: Mapping[str, Path], source: Path, target: Path, packages: Sequence[str]
) -> None:
    patchelf = find_patchelf(packages)
    if patchelf is None:
        raise _no_patchelf()
    renames = [
        argument
        for path in originals.values()
        for argument in ("--replace-needed", path.name, _soname(path))
    ]
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        folder = Path(scratch) / "made"
        folder.mkdir()
        for original in originals.values():
            copy = folder / _soname(original)
            shutil.copyfile(original, copy)
            copy.chmod(0o755)
            rpath = ("--force-rpath", "--set-rpath", f"{target}:{source}")
            _run([patchelf, "--set-soname", copy.name, *renames, *rpath, str(copy)])
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
        (folder / SIZES).write_text(json.dumps(sizes, indent=2))
        if os.path.lexists(target):  # not whole; a process that has mapped its files keeps them
            target.rename(Path(scratch) / "not whole")
        folder.rename(target)


def _no_patchelf() -> WheelRefusedError:
    return WheelRefusedError(
        WheelRefusal.NO_PATCHELF,
        "torchcodec finds no FFmpeg on this system, and patchelf, which would make PyAV's "
        "usable, isn't installed",
        remedy="Run `pip install patchelf`, or install FFmpeg 7",
    )


def _run(command: list[str]) -> None:
    try:
        done = run_child(command, timeout_seconds=PREPARE_TIMEOUT_SECONDS)
    except ChildError as exc:
        raise _not_prepared(str(exc)) from exc
    if done.status != 0:
        raise _not_prepared(done.stderr.decode("utf-8", "replace").strip())


def _not_prepared(detail: str) -> WheelRefusedError:
    return WheelRefusedError(
        WheelRefusal.NOT_PREPARED,
        "PyAV's FFmpeg could not be prepared for torchcodec",
        remedy="Install FFmpeg 7, or pass backend='pyav'",
        detail=detail,
    )
