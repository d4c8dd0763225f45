"""``reelseek demo``: the main job on the sample dataset, or on yours."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from reelseek.datasets import Dataset

OFFSETS = (0, 16)
ACTION_STEPS = 16
SHEET_SAMPLES = 4


def demo(
    dataset: Annotated[
        Path | None, typer.Argument(help="A dataset's folder.  [the sample dataset]")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where pictures and JSON go.")] = Path("out/demo"),
    workers: Annotated[int, typer.Option(min=0, help="DataLoader workers.")] = 2,
    batch_size: Annotated[int, typer.Option(min=1, help="Samples per batch.")] = 16,
    seed: Annotated[int, typer.Option(help="Of everything drawn at random.")] = 0,
) -> None:
    """Describe a dataset, read all of it through a DataLoader, time the decoders, draw frames.

    A sample is, from every camera, the frames at base and base + 16, and the 16 actions from base.
    """
    import reelseek
    from reelseek.cli._bench import seek
    from reelseek.cli._console import show
    from reelseek.cli._info import rendered
    from reelseek.datasets import summarise
    from reelseek.sample import sample_dataset

    root = dataset or sample_dataset()
    opened = reelseek.open_dataset(root, delta_indices=_deltas(root))
    show("[bold]1. What it is[/bold]  (reelseek info)", *rendered(summarise(opened)), "")
    show(f"[bold]2. Every sample through a DataLoader[/bold]  ({workers} workers, batches of "
         f"{batch_size}, shuffled)")  # fmt: skip
    show(_read_all(opened, workers, batch_size, seed), "")
    show("[bold]3. Random seeks with every decoder[/bold]  (reelseek bench seek)")
    try:
        seek(root, out=out, seed=seed)
    finally:
        show("", "[bold]4. What the frames are[/bold]")
        show(f"contact sheet: {_draw(root, out / 'contact_sheet.png', seed)}")


def _deltas(root: Path) -> dict[str, Any]:
    """Two frames of each camera and the actions between, for what the dataset has of these."""
    import reelseek

    plain = reelseek.open_dataset(root, output="numpy")
    deltas: dict[str, Any] = dict.fromkeys(plain.cameras, OFFSETS)
    if "action" in plain.keys:
        deltas["action"] = range(ACTION_STEPS)
    return deltas


def _read_all(dataset: Dataset, workers: int, batch_size: int, seed: int) -> str:
    """Read every sample once, in random order; what it took, as one line."""
    import torch
    from torch.utils.data import DataLoader

    from reelseek.cli._console import progress_bar

    loader: Any = DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=True,
        num_workers=workers,
        generator=torch.Generator().manual_seed(seed),
    )
    frames = count = 0
    first_batch = 0.0
    started = time.perf_counter()
    with progress_bar("reading samples", len(dataset)) as advance:
        for batch in loader:
            first_batch = first_batch or time.perf_counter() - started
            count += len(batch["index"] if "index" in batch else batch[dataset.keys[0]])
            frames += sum(batch[c].shape[0] * batch[c].shape[1] for c in dataset.cameras)
            advance(count)
    seconds = time.perf_counter() - started
    return (
        f"{count} samples, {frames} frames in {seconds:.2f} s: {count / seconds:.0f} samples/s "
        f"(the first batch after {first_batch:.2f} s, workers' start included)"
    )


def _draw(root: Path, path: Path, seed: int) -> Path | str:
    import numpy as np

    import reelseek
    from reelseek.bench import sheet_samples, write_contact_sheet

    dataset = reelseek.open_dataset(root, delta_indices=_deltas(root), output="numpy")
    if not dataset.cameras or not len(dataset):
        return "none, as the dataset has no pictures"
    drawn = np.random.default_rng(seed).permutation(len(dataset))[:SHEET_SAMPLES]
    samples = sheet_samples(dataset, sorted(map(int, drawn)))
    title = f"{dataset.root.name}: frames at base and base + {OFFSETS[-1]}"
    return write_contact_sheet(samples, path, title=title)
