"""The proof: import torchcodec in a new process, as it would start, and decode one frame."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reelseek.native._child import ChildError, Ended, run_child
from reelseek.native._facts import Facts
from reelseek.native._printable import printable
from reelseek.sample import sample_dataset

PROOF_TIMEOUT_SECONDS = 120
"""Importing torch from a slow network drive takes a minute."""
MAX_MESSAGE = 20_000

SCRIPT = """
import json, sys
import torch, torchcodec
from torchcodec.decoders import VideoDecoder
print(json.dumps({"step": "imported"}), flush=True)
frame = VideoDecoder(sys.argv[1])[0]
print(json.dumps({"step": "decoded", "shape": list(frame.shape)}), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a new process of the environment's Python did."""

    imports: bool
    """Whether torchcodec was imported."""
    decodes: bool
    """Whether a frame of AV1 was decoded."""
    seconds: float
    """How long it took, most of it importing torch."""
    message: str = ""
    """The last word of a failure."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", printable(self.message))


def prove(
    facts: Facts, folders: Sequence[str], *, timeout_seconds: float = PROOF_TIMEOUT_SECONDS
) -> Proof:
    """Import torchcodec and decode a frame with the folders first on LD_LIBRARY_PATH."""
    return prove_with(
        facts,
        ":".join([*folders, *facts.ld_library_path]),
        timeout_seconds=timeout_seconds,
    )


def prove_with(
    facts: Facts, ld_library_path: str, *, timeout_seconds: float = PROOF_TIMEOUT_SECONDS
) -> Proof:
    """The same with LD_LIBRARY_PATH as given; empty leaves it unset."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    if ld_library_path:
        environment["LD_LIBRARY_PATH"] = ld_library_path
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            done = run_child(
                [facts.python, "-c", SCRIPT, str(_clip())],
                timeout_seconds=timeout_seconds,
                environment=environment,
                folder=scratch,  # empty: `-c` looks for modules where it is started
            )
        except ChildError as exc:
            return Proof(False, False, time.perf_counter() - begin, str(exc))
    steps = set(_steps(done.stdout))
    return Proof(
        imports="imported" in steps,
        decodes="decoded" in steps,
        seconds=time.perf_counter() - begin,
        message="" if "decoded" in steps else _last_word(done),
    )


def _clip() -> Path:
    return next(sample_dataset().glob("videos/**/*.mp4"))


def _steps(output: bytes) -> list[str]:
    steps = []
    for line in output.splitlines():
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue  # a package that prints when it is imported
        if isinstance(said, dict):
            steps.append(str(said.get("step")))
    return steps


def first_reason(text: str) -> str:
    """Of torchcodec's message, the first reason that is no probe for an FFmpeg, else the first."""
    said: list[str] = re.findall(r"^(?:OSError|ImportError): (.+)", text, re.M)
    reasons = [reason for reason in said if not reason.startswith("Could not load this library")]
    real = [reason for reason in reasons if not re.match(r"lib(av|sw)\w+\.so", reason)]
    return next(iter(real or reasons or said), "")


def _last_word(done: Ended) -> str:
    """The line that says most: torchcodec's first reason, else the last line."""
    text = done.stderr.decode("utf-8", "replace")[-MAX_MESSAGE:]
    reason = first_reason(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if reason:
        return reason
    if done.status < 0:
        return f"ended by signal {-done.status}"
    return lines[-1] if lines else f"exit status {done.status}"
