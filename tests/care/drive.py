"""Indexes, verifies and re-encodes a dataset where it is told, and prints what came of it."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

from reelseek.care._index import index_dataset
from reelseek.care.jobs import Executor
from reelseek.care.reencode import Encoding, reencode_dataset
from reelseek.care.verify import verify_dataset
from reelseek.index import Sidecar
from tests.care.jobs.drive import executor_of


def records(root: Path) -> dict[str, str]:
    """A hash of each video's record in the dataset's index."""
    sidecar = Sidecar(str(root / "meta" / "reelseek" / "index.bin"), str(root))
    return {
        head.path.decode(): hashlib.sha256(record.facts + record.body).hexdigest()
        for head, record in sidecar.records()
    }


def files(root: Path) -> dict[str, str]:
    """A hash of each file but the index, which holds times."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and "reelseek" not in path.relative_to(root).parts
    }


def done(root: Path, executor: Executor) -> dict[str, object]:
    """What index, verify and reencode make of a dataset."""
    out = root.with_name("out")
    report, _summary = index_dataset(root, executor)
    found = verify_dataset(root, level="decode", executor=executor).document()
    written = reencode_dataset(root, out, Encoding("h264", gop=2), executor=executor)
    result = {
        "indexed": [report.num_indexed, len(report.failures)],
        "records": records(root),
        "findings": found["findings"],
        "frames": written.document()["num_frames"],
        "files": files(out),
    }
    shutil.rmtree(out)
    shutil.rmtree(root / "meta" / "reelseek")
    return result


if __name__ == "__main__":
    name, address, root = sys.argv[1:]
    print(json.dumps(done(Path(root), executor_of(name, address))))
