"""Keeps benchmark results in docs/bench, and renders them as the tables in the documents.

    python scripts/bench_table.py keep out/bench/bench_seek.json docs/bench/NAME.json
    python scripts/bench_table.py render        # rewrites the tables in README.md and docs/*.md
    python scripts/bench_table.py check         # exit status 1 where a table isn't what it would be

A table stands between ``<!-- bench: NAME -->`` and ``<!-- /bench -->``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
MARKED = re.compile(r"(<!-- bench: ([\w-]+) -->\n).*?(<!-- /bench -->)", re.S)


def kept(document: dict[str, Any]) -> dict[str, Any]:
    """A result without the paths of the machine that it comes from."""
    root = document["dataset"]["root"]
    text = json.dumps(document).replace(root + "/", "").replace(root, Path(root).name)
    cleaned: dict[str, Any] = json.loads(text)
    for backend in cleaned["backends"]:
        del backend["check"]["read_ms"]
    return cleaned


def table(document: dict[str, Any]) -> str:
    """A result as a Markdown table."""
    settings, videos, machine = (document[k] for k in ("settings", "videos", "environment"))
    cameras = len(settings["cameras"])
    cache = settings["cache_state"].split(":")[0]
    seek = f"{len(settings['offsets'])} frames"
    rows = [
        f"| decoder | {seek}, ms: median (p95) | {cameras} camera{'s' * (cameras > 1)}, ms "
        "| cold, ms | first read of a file, ms | |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        *(_row(backend) for backend in document["backends"]),
    ]
    caption = (
        f"{'/'.join(videos['codecs'])} {', '.join(videos['sizes'])}, a key frame every "
        f"{videos['mean_gop']:.3g} frames; {settings['num_seeks']} random seeks, one thread, "
        f"{cache}, {machine['cpu']}, reelseek {machine['reelseek']}."
    )
    return "\n".join([*rows, "", caption, ""])


def _row(backend: dict[str, Any]) -> str:
    name = f"{backend['name']} {backend.get('version') or ''}".strip()
    if not backend["is_timed"]:
        return f"| {name} | | | | | {backend['check']['reason']} |"
    columns = ("sample_median_ms", "cold_median_ms", "first_read_median_ms")
    cells = ["" if backend[key] is None else f"{backend[key]:.2f}" for key in columns]
    seek = f"{backend['seek_median_ms']:.2f} ({backend['seek_p95_ms']:.2f})"
    return f"| {name} | {seek} | {' | '.join(cells)} | {backend['usage']} |"


def rendered(text: str) -> str:
    """A document with its tables made anew."""

    def fresh(match: re.Match[str]) -> str:
        path = REPOSITORY / "docs" / "bench" / f"{match[2]}.json"
        return match[1] + table(json.loads(path.read_text())) + match[3]

    return MARKED.sub(fresh, text)


def main(arguments: Sequence[str]) -> int:
    """Do what the first argument says."""
    if arguments[0] == "keep":
        source, target = map(Path, arguments[1:3])
        document = kept(json.loads(source.read_text()))
        target.write_text(json.dumps(document, indent=1) + "\n")
        return 0
    stale = 0
    for path in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))):
        text = path.read_text()
        if rendered(text) != text:
            stale += 1
            print(f"{path.name}: its benchmark tables differ from docs/bench")
            if arguments[0] == "render":
                path.write_text(rendered(text))
    return stale if arguments[0] == "check" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
