"""The real dynamic linker as the oracle: what it maps for a library, and what it says."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE

PROGRAM = r"""
import ctypes, json, os, signal, sys

class LinkMap(ctypes.Structure):
    pass

LinkMap._fields_ = [("addr", ctypes.c_size_t), ("name", ctypes.c_char_p), ("ld", ctypes.c_void_p),
                    ("next", ctypes.POINTER(LinkMap))]
here = ctypes.CDLL(None)
here.dlopen.argtypes, here.dlopen.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
here.dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
here.dlerror.restype = ctypes.c_char_p
RTLD_LAZY, RTLD_NOW, RTLD_GLOBAL, RTLD_DI_LINKMAP = 1, 2, 256, 2

def mapped():
    "Every library of this process in the order of loading; the kernel's own has no slash."
    first = ctypes.POINTER(LinkMap)()
    here.dlinfo(here._handle, RTLD_DI_LINKMAP, ctypes.byref(first))
    names, entry = [], first
    while entry:
        names.append(os.fsdecode(entry.contents.name or b""))
        entry = entry.contents.next
    return [name for name in names if "/" in name]

def load(path, mode):
    "In a child, so that nothing stays mapped for the next one."
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        error = "" if here.dlopen(os.fsencode(path), mode) else os.fsdecode(here.dlerror())
        with open(writer, "w") as out:
            json.dump([error, mapped()[len(before):]], out)
        os._exit(0)
    os.close(writer)
    with open(reader) as answer:
        said = answer.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(said) if said else [f"died of {status}", []]

exec(sys.argv[1])
before = mapped()
print(json.dumps(before))
for line in sys.stdin:
    path = line.rstrip("\n")
    error, new = load(path, RTLD_NOW | RTLD_GLOBAL)
    if "undefined symbol" in error:  # where a library is taken from is settled before that
        new = load(path, RTLD_LAZY | RTLD_GLOBAL)[1]
    print(json.dumps([path, error, new]), flush=True)
"""


@dataclass(frozen=True, slots=True)
class GlibcLoad:
    """What glibc did when it was asked to load one library."""

    path: str
    error: str
    """What dlerror(3) said; empty where it loaded."""
    mapped: tuple[str, ...]
    """What was mapped for it, itself first, in order; empty where it didn't load."""


@dataclass(frozen=True, slots=True)
class Session:
    """One process that loads libraries, each in a child of its own."""

    mapped: tuple[str, ...]
    """What it had mapped before, in order, without the program itself."""
    loads: tuple[GlibcLoad, ...]


def load_with_glibc(
    python: str | Path,
    paths: Iterable[str | Path],
    *,
    variables: Mapping[str, str] | None = None,
    first: str = "",
) -> Session:
    """Let glibc load each of the libraries in a process of ``python``, with only these variables.

    Args:
        python: The interpreter; it needs ctypes and nothing else.
        paths: Absolute paths of libraries.
        variables: The environment variables of the process.
        first: Code that is run before, for what it maps.
    """
    done = subprocess.run(
        [str(python), "-c", PROGRAM, first],
        input="".join(f"{path}\n" for path in paths),
        env={"PATH": os.environ.get("PATH", ""), **(variables or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Libraries may write to stdout when they are loaded; ours are the lines of JSON.
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return Session(
        tuple(lines[0]),
        tuple(GlibcLoad(path, error, tuple(mapped)) for path, error, mapped in lines[1:]),
    )


def list_with_glibc(program: str | Path, variables: Mapping[str, str] | None = None) -> list[str]:
    """Paths of what glibc maps for a program, which isn't started (LD_TRACE_LOADED_OBJECTS)."""
    done = subprocess.run(
        [str(program)],
        env={**(variables or {}), "LD_TRACE_LOADED_OBJECTS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    lines = (line.strip().rpartition(" (")[0] for line in done.stdout.splitlines())
    return [path for line in lines if "/" in (path := line.rpartition("=> ")[2])]
