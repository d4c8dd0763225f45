"""The command that a finding names mends it, as it stands there."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reelseek.care.reencode import Encoding, reencode_dataset
from reelseek.care.verify import CODES, Severity, verify_dataset
from reelseek.index import build_index
from reelseek.index._video_record import VideoRecord
from reelseek.index._worker import index_file
from tests.care.reencode.conftest import Inline
from tests.care.verify.conftest import Tiny, bars, on_grid
from tests.care.verify.test_damage import CASES, Damage, name_of
from tests.datasets.makers import pictures_video

COMMAND = re.compile(r"`reelseek reencode DATASET OUT( --restamp)?(?: --size (\d+)x(\d+))?`")
MENDED = {code for code, known in CODES.items() if "reelseek reencode" in known.remedy}


@pytest.fixture(autouse=True)
def _index_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the new dataset's index be made in this process, which is quicker."""

    def index_files(folder: str, files: list[bytes]) -> Iterator[tuple[bytes, VideoRecord | str]]:
        return ((file, index_file(folder, file)) for file in files)

    here = functools.partial(build_index, index_files=index_files)
    monkeypatch.setattr("reelseek.care.reencode._dataset.build_index", here)


def run(remedy: str, root: Path, out: Path) -> None:
    """Run a remedy's command."""
    command = COMMAND.search(remedy)
    assert command, remedy
    restamp, width, height = command.groups()
    size = (int(width), int(height)) if width else None
    encoding = Encoding("h264", 2, preset="veryfast", size=size)
    report = reencode_dataset(root, out, encoding, restamp=bool(restamp), executor=Inline())
    assert not report.failures


@pytest.mark.parametrize(
    ("codes", "damage"),
    [(codes, damage) for codes, _level, damage in CASES if codes[0] in MENDED],
    ids=name_of,
)
def test_reencoding_mends_it(
    tiny: Tiny, codes: tuple[str, ...], damage: Damage, tmp_path: Path
) -> None:
    damage(tiny)
    (finding,) = (f for f in verify_dataset(tiny.root).findings if f.code == codes[0])
    run(finding.remedy, tiny.root, tmp_path / "out")
    left = verify_dataset(tmp_path / "out").findings
    assert not [finding for finding in left if finding.severity is not Severity.NOTE]


def test_each_such_remedy_is_tried() -> None:
    assert {codes[0] for codes, _level, _damage in CASES} >= MENDED


def test_times_of_other_frames_than_rows_are_not_to_be_stamped(tiny: Tiny) -> None:
    tiny.write_video(pictures_video(bars(9), on_grid(9, 10_000 / 1001)))
    remedies = {finding.code: finding.remedy for finding in verify_dataset(tiny.root).findings}
    assert "number of frames first" in remedies["fps-ntsc"]
