"""LeRobot reads through reelseek while the drop-in is on, and itself when it is off again."""

from __future__ import annotations

import inspect
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.errors import DependencyError, TimestampToleranceError, VideoNotFoundError
from reelseek.integrations import lerobot as drop_in
from reelseek.sample import sample_dataset
from tests import oracle
from tests.conftest import REPOSITORY, needed
from tests.corpus import clip_path
from tests.datasets.makers import make_v30
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow

torch = needed("torch")

SAMPLE = sample_dataset() / "videos/chunk-000/observation.images.top/episode_000000.mp4"
TOLERANCE = 1e-4


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    drop_in.disable()


def opened(lerobot: Any, root: Path) -> Any:
    cameras = reelseek.open_dataset(root).cameras
    info = json.loads((root / "meta/info.json").read_text())
    deltas = {key: [0, 2 / info["fps"]] for key in (*cameras, "action")}
    return lerobot.datasets.LeRobotDataset(
        "local/dataset", root=root, delta_timestamps=deltas, video_backend="torchcodec"
    )


def same(left: Any, right: Any) -> bool:
    return bool(torch.equal(left, right) if isinstance(left, torch.Tensor) else left == right)


def assert_same_samples(lerobot: Any, root: Path, indices: Any) -> None:
    ds = opened(lerobot, root)
    own = [ds[index] for index in indices]
    with drop_in.enable():
        ours = [ds[index] for index in indices]
    for left, right in zip(own, ours, strict=True):
        assert set(left) == set(right)
        assert all(same(left[key], right[key]) for key in left)


def test_function_is_replaced_wherever_lerobot_imported_it_to(lerobot: Any) -> None:
    own = lerobot.video.decode_video_frames
    assert lerobot.datasets.decode_video_frames is own
    drop_in.enable()
    assert drop_in.is_enabled()
    assert lerobot.datasets.decode_video_frames is lerobot.video.decode_video_frames is not own
    assert inspect.signature(lerobot.video.decode_video_frames) == inspect.signature(own)
    drop_in.disable()
    assert not drop_in.is_enabled()
    assert lerobot.datasets.decode_video_frames is lerobot.video.decode_video_frames is own


def test_with_statement_puts_back_what_was_before(lerobot: Any) -> None:
    own = lerobot.video.decode_video_frames
    with drop_in.enable(backend="pyav"):
        outer = lerobot.video.decode_video_frames
        with drop_in.enable():
            assert lerobot.video.decode_video_frames not in (own, outer)
        assert drop_in.is_enabled()
    assert lerobot.video.decode_video_frames is own


def test_frames_equal_lerobots_bit_for_bit(lerobot: Any) -> None:
    times = [index / 30 for index in range(0, 150, 7)]
    own = lerobot.video.decode_video_frames(SAMPLE, times, TOLERANCE, "torchcodec")
    ours = drop_in.decode_video_frames(SAMPLE, times, TOLERANCE)
    assert torch.equal(own, ours)
    assert (ours.dtype, ours.stride()) == (own.dtype, own.stride())
    raw = drop_in.decode_video_frames(SAMPLE, times, TOLERANCE, return_uint8=True)
    assert torch.equal(raw, (own * 255).round().to(torch.uint8))
    assert raw.is_contiguous()


def test_tiny_dataset_gives_the_same_samples(lerobot: Any, tmp_path: Path) -> None:
    assert_same_samples(lerobot, make_v30(tmp_path / "v30"), range(25))


def test_real_dataset_gives_the_same_samples_for_no_more(
    lerobot: Any, real_datasets: Path, figure: Callable[[str], None]
) -> None:
    root = real_datasets / "aloha3cam_v30_128"
    indices = random.Random(5).sample(range(2641), 16)
    assert_same_samples(lerobot, root, indices)
    ds, seconds = opened(lerobot, root), dict.fromkeys(("own", "ours"), 0.0)
    with one_thread():
        for name in ("own", "ours") * 3:
            if name == "ours":
                drop_in.enable()
            ds[0]
            start = time.process_time()
            for index in indices:
                ds[index]
            seconds[name] += (time.process_time() - start) / (3 * len(indices))
            drop_in.disable()
    figure(f"LeRobotDataset[i], 3 cameras x 2 frames, warm, CPU: {seconds['own'] * 1e3:.1f} ms "
           f"with torchcodec, {seconds['ours'] * 1e3:.1f} ms with the drop-in")  # fmt: skip
    assert seconds["ours"] < 1.2 * seconds["own"]


@contextmanager
def one_thread() -> Iterator[None]:
    """As in a DataLoader's worker."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.filterwarnings("ignore:The video decoding and encoding capabilities of torchvision")
@pytest.mark.parametrize("clip", ["variable_rate.mp4", "dropped.mp4", "starts_late.mp4",
                                  "hevc_short_gop.mp4"])  # fmt: skip
def test_each_time_gives_its_own_frame_where_frames_are_uneven(
    lerobot: Any, clip: str, figure: Callable[[str], None]
) -> None:
    path, expected = clip_path(clip), oracle.clip(clip).frames
    times = reelseek.open_video(path).pts_seconds.tolist()
    drop_in.enable()
    found = lerobot.video.decode_video_frames(path, times, TOLERANCE, "torchcodec")
    assert np.array_equal(pictures(found), np.stack(expected))
    drop_in.disable()
    verdicts: Counter[str] = Counter()
    for backend in ("torchcodec", "pyav"):
        for number in range(0, len(times), 5):
            verdict = own_answer(lerobot, path, times[number], expected[number], backend)
            verdicts[f"{backend} {verdict}"] += 1
    figure(f"LeRobot's own decode_video_frames on {clip}, one frame in five: {dict(verdicts)}")


def own_answer(lerobot: Any, path: Path, seconds: float, expected: Any, backend: str) -> str:
    try:
        frame = lerobot.video.decode_video_frames(path, [seconds], TOLERANCE, backend)
    except (IndexError, ValueError, RuntimeError) as exc:
        return type(exc).__name__
    return "right" if np.array_equal(pictures(frame)[0], expected) else "wrong"


def pictures(frames: Any) -> Any:
    return (frames * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()


def test_time_that_no_frame_has_is_lerobots_error(lerobot: Any) -> None:
    with drop_in.enable(), pytest.raises(lerobot.video.FrameTimestampError, match=r"0\.010000 s"):
        lerobot.video.decode_video_frames(SAMPLE, [0.0, 0.01], TOLERANCE)
    with pytest.raises(TimestampToleranceError, match="frame 0, is at"):
        drop_in.decode_video_frames(SAMPLE, [0.01], TOLERANCE)


def test_other_errors_are_of_the_classes_that_lerobot_raises(lerobot: Any, tmp_path: Path) -> None:
    with drop_in.enable():
        with pytest.raises(ValueError, match="Unsupported video backend: betamax"):
            lerobot.video.decode_video_frames(SAMPLE, [0.0], TOLERANCE, "betamax")
        with pytest.raises(VideoNotFoundError):  # a FileNotFoundError
            lerobot.video.decode_video_frames(tmp_path / "none.mp4", [0.0], TOLERANCE)


def test_what_only_lerobot_can_read_is_left_to_it() -> None:
    def decode(
        video_path: str, timestamps: Any, tolerance_s: float, backend: Any = None,
        return_uint8: bool = False, is_depth: bool = False,
    ) -> str:  # fmt: skip
        return "own"

    ours = drop_in._in_place_of(decode, drop_in._files, ValueError)
    assert ours("https://host/a.mp4", [0.0], 1e-4) == "own"
    assert ours(str(SAMPLE), [0.0], 1e-4, is_depth=True) == "own"
    assert ours(str(SAMPLE), [0.0], 1e-4, return_uint8=True).dtype == torch.uint8


@pytest.mark.parametrize("version", ["0.7.0", "1.0"])
def test_unknown_version_is_refused_by_its_number(tmp_path: Path, version: str) -> None:
    (tmp_path / "lerobot").mkdir()
    (tmp_path / "lerobot/__init__.py").touch()
    about = tmp_path / f"lerobot-{version}.dist-info/METADATA"
    about.parent.mkdir()
    about.write_text(f"Metadata-Version: 2.1\nName: lerobot\nVersion: {version}\n")
    script = "import reelseek.integrations.lerobot as d\nd.enable()"
    done = run_script(script, str(tmp_path))
    assert f"DependencyError: the installed LeRobot is {version}" in done.stderr


def test_lerobot_that_is_not_installed_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "lerobot", None)
    with pytest.raises(DependencyError, match="LeRobot isn't installed"):
        drop_in.enable()


WORKERS = """
import sys
import warnings
warnings.simplefilter("ignore")
from reelseek.bench._torchvision_loading import import_peer
datasets = import_peer("lerobot.datasets.lerobot_dataset")
import torch
from reelseek.integrations import lerobot as drop_in

def collate(samples):
    is_ours = datasets.decode_video_frames.__module__ == "lerobot.datasets.video_utils" and hasattr(
        datasets.decode_video_frames, "__wrapped__")
    return drop_in.is_enabled() and is_ours, samples

if __name__ == "__main__":
    ds = datasets.LeRobotDataset("local/dataset", root=sys.argv[1], video_backend="torchcodec")
    with drop_in.enable():
        expected = [ds[index] for index in range(4)]
        loader = torch.utils.data.DataLoader(
            ds, batch_size=2, sampler=range(4), num_workers=1, collate_fn=collate,
            multiprocessing_context=sys.argv[2])
        batches = list(loader)
    assert [on for on, _ in batches] == [True, True], batches
    found = [sample for _, samples in batches for sample in samples]
    for left, right in zip(found, expected, strict=True):
        assert all(torch.equal(left[k], right[k]) for k in left if torch.is_tensor(left[k]))
    print("same")
"""


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_workers_have_it_too(lerobot: Any, tmp_path: Path, start_method: str) -> None:
    assert lerobot is not None
    root = make_v30(tmp_path / "v30")
    done = run_script(WORKERS, str(tmp_path), str(root), start_method)
    assert done.stdout.strip() == "same", done.stderr


def run_script(body: str, folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = Path(folder) / "script.py"
    script.write_text(body)
    path = os.pathsep.join([folder, str(REPOSITORY / "src")])
    return subprocess.run(
        [sys.executable, str(script), *arguments],
        env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "HF_HOME": folder},
        cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
