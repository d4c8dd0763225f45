"""Keeps benchmark results in docs/bench, and renders them as the tables in the documents.

    python scripts/bench_table.py keep out/bench_seek.json docs/bench/NAME.json
    python scripts/bench_table.py render        # rewrites the tables in README.md and docs/*.md
    python scripts/bench_table.py check         # exit status 1 where a table isn't what it would be

A table stands between ``<!-- bench: NAME -->`` and ``<!-- /bench -->``.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
MARKED = re.compile(r"(<!-- bench: ([\w-]+) -->\n).*?(<!-- /bench -->)", re.S)


def kept(document: dict[str, Any]) -> dict[str, Any]:
    """A result without the paths of the machine that it comes from."""
    about = document.get("dataset") or document["settings"]
    text = json.dumps(document)
    for root in {about["root"], about.get("lerobot_root", about["root"])}:
        text = text.replace(root + "/", "").replace(root, Path(root).name)
    cleaned: dict[str, Any] = json.loads(text)
    for backend in cleaned.get("backends", ()):
        backend.get("check", {}).pop("read_ms", None)
    return cleaned


def table(document: dict[str, Any]) -> str:
    """A result as a Markdown table."""
    return TABLES[document["schema"]](document)


def seek_table(document: dict[str, Any]) -> str:
    """Random seeks."""
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


def preprocess_table(document: dict[str, Any]) -> str:
    """SigLIP's preprocessing."""
    machine, count = document["environment"], document["num_frames"]
    rows = ["| | frames/s | ms a frame | levels off | |", "| --- | ---: | ---: | ---: | --- |"]
    for way in document["ways"]:
        # By the processor's clock: another load on the machine hardly changes it.
        each = statistics.median(way["batch_cpu_ms"]) / count
        off = way["max_levels_from_slow_processor"]
        cells = [f"{1000 / each:,.0f}", f"{each:.3f}", f"{off:.0f}"]
        rows.append(f"| {way['name']} | {' | '.join(cells)} | {way['usage']} |")
    caption = (
        f"{count} frames of {document['frame_width']}x{document['frame_height']} to "
        f"{document['size']}x{document['size']}, one thread, processor time, {machine['cpu']}, "
        f"transformers {machine['packages']['transformers']}, "
        f"torch {machine['packages']['torch']}."
    )
    return "\n".join([*rows, "", caption, ""])


def train_table(document: dict[str, Any]) -> str:
    """Training steps."""
    options, machine = document["options"], document["environment"]
    rows = [
        "| | it/s (each round) | waiting | preprocessing | computing | worker busy "
        "| one core feeds, it/s | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        *(_train_row(setup) for setup in document["setups"]),
    ]
    workers = options["num_workers"]
    caption = (
        f"{Path(document['dataset']['root']).name}, {len(document['cameras'])} cameras, batch size "
        f"{options['batch_size']}, {workers} worker{'s' * (workers != 1)}, encoder "
        f"{options['model']} on {options['device']}, {machine['cpu']}, "
        f"{machine['cpus_usable']} cores, load average {machine['load_average'][0]:.0f}."
    )
    return "\n".join([*rows, "", caption, ""])


def _train_row(setup: dict[str, Any]) -> str:
    if not setup["wait_ms"]:
        return f"| {setup['name']} | | | | | | | {setup['why_not']} |"
    rates = setup["round_steps_per_second"]
    shares = [f"{setup[f'share_{part}']:.0%}" for part in ("waiting", "preprocessing", "computing")]
    speed = f"{setup['steps_per_second']:.2f} ({min(rates):.2f} to {max(rates):.2f})"
    busy = "" if setup["worker_busy"] is None else f"{setup['worker_busy']:.0%}"
    cells = [speed, *shares, busy, f"{setup['core_feeds_steps_per_second']:.0f}"]
    return f"| {setup['name']} | {' | '.join(cells)} | {setup['usage']} |"


def loader_table(document: dict[str, Any]) -> str:
    """Data loaders, and single samples."""
    settings, machine = document["settings"], document["environment"]
    rows = [
        "| loader | samples/s (each round) | worker CPU, ms a sample | worker memory, MB | |",
        "| --- | ---: | ---: | ---: | --- |",
        *(_loader_row(way) for way in document["loaders"]),
    ]
    singles = [
        "| one sample | warm, ms | cold, ms | cold / warm |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {way['name']} | {way['warm_median_ms']:.2f} | {way['cold_median_ms']:.2f} "
            f"| {way['cold_to_warm']:.2f} |"
            for way in document["single_samples"]
            if not way["why_not"]
        ),
    ]
    offsets = ", ".join(f"{n:+d}" if n else "0" for n in settings["offsets"])
    caption = (
        f"{Path(settings['root']).name}: batches of {settings['batch_size']}, frames ({offsets}) "
        f"of each camera and {settings['action_steps']} actions, {settings['num_workers']} "
        f"workers, page cache warm, {machine['cpu']}, {machine['cpus_usable']} cores, "
        f"load average {machine['load_average'][0]:.0f}."
    )
    tables = [rows, singles] if document["single_samples"] else [rows]
    return "\n".join(line for lines in tables for line in [*lines, ""]) + f"\n{caption}\n"


def _loader_row(way: dict[str, Any]) -> str:
    rates = way["samples_per_second"]
    if not rates:
        return f"| {way['name']} | | | | {way['why_not']} |"
    speed = f"{way['median_samples_per_second']:.0f} ({min(rates):.0f} to {max(rates):.0f})"
    cells = [speed, f"{way['median_cpu_ms_per_sample']:.2f}", f"{way['worker_megabytes'][-1]:.0f}"]
    return f"| {way['name']} | {' | '.join(cells)} | {way['usage']} |"


TABLES = {
    "reelseek.bench.loader/1": loader_table,
    "reelseek.bench.seek/1": seek_table,
    "reelseek.bench.seek/2": seek_table,
    "reelseek.bench.preprocess/1": preprocess_table,
    "reelseek.bench.train/1": train_table,
}


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
