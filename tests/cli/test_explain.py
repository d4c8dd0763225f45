"""``reelseek explain`` as a user runs it, and that its counts are the engine's."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reelseek
from reelseek.bench._explain import explain, summary
from reelseek.errors import FrameIndexError
from reelseek.index import index_video
from reelseek.index._gop import UnitKind
from reelseek.index._plan import plan_frames
from reelseek.index._unit_build import build_units
from tests.cli.conftest import Run
from tests.conftest import skip_without
from tests.corpus import clip_path

CLIPS = ("av1_default.mp4", "av1_g2.mp4", "av1_libaom.mp4", "av1_rav1e.mp4", "b_frames.mp4",
         "hevc_open_gop.mp4", "vp9.mp4")  # fmt: skip


def planned(path: str, frames: list[int]) -> list[int]:
    units = build_units(path, index_video(path))
    assert not isinstance(units, str)
    return [unit for run in plan_frames(units, frames) for unit in run.units]


@pytest.mark.parametrize("name", CLIPS)
def test_counts_are_the_plans(name: str) -> None:
    path = str(clip_path(name))
    found = explain(path, [40, 56])
    assert found.together.units_needed == len(planned(path, [40, 56]))
    for one in found.frames:
        assert one.cost.units_needed == len(planned(path, [one.frame]))
    assert set(planned(path, [40, 56])) == set().union(*(gop.needed for gop in found.gops))


@pytest.mark.parametrize("name", CLIPS)
def test_bytes_and_calls_are_those_that_the_engine_reads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(clip_path(name))
    sizes: list[int] = []
    pread = os.pread

    def counted(descriptor: int, size: int, offset: int) -> bytes:
        sizes.append(size)
        return pread(descriptor, size, offset)

    with reelseek.open_video(path, backend="indexed") as video:
        monkeypatch.setattr(os, "pread", counted)
        video.get_frames_at([40, 56])
    monkeypatch.undo()
    together = explain(path, [40, 56]).together
    assert (together.bytes_read, together.preads) == (sum(sizes), len(sizes))


@pytest.mark.parametrize("name", CLIPS)
def test_references_of_what_is_needed_are_needed(name: str) -> None:
    for gop in explain(clip_path(name), [40, 56]).gops:
        for one in gop.units:
            if one.unit in gop.needed:
                assert set(one.references) <= gop.needed


def test_headers_that_show_a_hidden_frame_cost_no_decoding() -> None:
    path = clip_path("av1_default.mp4")
    found = explain(path, [40])
    (gop,) = found.gops
    shown = [one for one in gop.units if one.kind is UnitKind.SHOWS_EXISTING]
    hidden = {one.unit for one in gop.units if one.kind is UnitKind.HIDDEN}
    assert shown and all(set(one.references) <= hidden for one in shown)
    needed = {one.unit for one in shown} & gop.needed
    cost = found.frames[0].cost
    assert cost.units_needed - cost.needed == len(needed) > 0


def test_a_hidden_frame_stands_where_it_is_displayed() -> None:
    (gop,) = explain(clip_path("av1_default.mp4"), [40]).gops
    by_unit = {one.unit: one for one in gop.units}
    for one in gop.units:
        if one.kind is UnitKind.SHOWS_EXISTING:
            assert [by_unit[other].place for other in one.references] == [one.place]


def test_frames_together_cost_less_than_alone() -> None:
    found = explain(clip_path("av1_default.mp4"), [40, 41])
    assert found.shared > 0
    alone = sum(one.cost.needed for one in found.frames)
    assert found.together.needed == alone - found.shared


def test_key_frames_are_named_by_their_numbers() -> None:
    found = explain(clip_path("av1_g20.mp4"), [0, 19, 21, -1])
    assert [one.frame for one in found.frames] == [0, 19, 21, 119]
    keys = np.flatnonzero(found.table.is_key)
    for one in found.frames:
        assert one.key_frame == keys[keys <= one.frame][-1]
    assert found.frames[0].cost.needed == 1


def test_groups_that_lie_near_each_other_are_drawn_as_one() -> None:
    assert len(explain(clip_path("av1_g2.mp4"), [40, 57]).gops) == 1
    assert len(explain(clip_path("av1_g2.mp4"), [2, 110]).gops) == 2


def test_short_groups_need_no_advice() -> None:
    assert "hardly be cheaper" in summary(explain(clip_path("av1_g2.mp4"), [40]))
    assert "re-encoded" in summary(explain(clip_path("av1_libaom.mp4"), [40]))


def test_no_such_frame() -> None:
    with pytest.raises(FrameIndexError, match="0 to 119"):
        explain(clip_path("av1_g2.mp4"), [120])


def lines_of(run: Run, *arguments: object) -> list[str]:
    done = run("explain", *arguments)
    assert done.returncode == 0, done.stderr
    lines: list[str] = done.stdout.splitlines()
    return lines


def test_the_terminal_shows_one_letter_for_each_unit(reelseek_command: Run) -> None:
    path = clip_path("av1_g2.mp4")
    lines = lines_of(reelseek_command, path, 40, 43)
    picture = next(n for n, line in enumerate(lines) if line.startswith("frames 40 to 43"))
    assert lines[picture + 1] == "    40 KdKD"
    assert lines[picture + 2] == "       ^  ^ frames 40, 43"
    assert lines[-1].startswith("Decodes 3 of 3 coded frames on the way to 2 frames.")


def test_a_file_without_units_is_explained_all_the_same(reelseek_command: Run) -> None:
    lines = lines_of(reelseek_command, clip_path("mpeg4.mp4"), 50)
    assert any(line.startswith("Not readable by units: ") for line in lines)
    assert lines[-1].startswith("Not readable by units (")


def test_json_has_a_schema_and_the_picture(reelseek_command: Run) -> None:
    path = clip_path("av1_default.mp4")
    done = reelseek_command("explain", path, 40, 56, "--json")
    written: dict[str, Any] = json.loads(done.stdout)
    assert written["schema"] == "reelseek.explain/1"
    assert written["pruning"] == "slots" and written["pruning_reason"] == ""
    assert [one["frame"] for one in written["frames"]] == [40, 56]
    units = [one for gop in written["gops"] for one in gop]
    assert sum(one["is_needed"] for one in units) == written["together"]["units_needed"]
    assert [one["frame"] for one in units if one["is_target"]] == [40, 56]


@pytest.mark.parametrize("name", ["av1_default.mp4", "av1_g2.mp4", "b_frames.mp4", "mpeg4.mp4"])
def test_the_picture_is_a_png(name: str, reelseek_command: Run, tmp_path: Path) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        skip_without("matplotlib", "matplotlib isn't installed")
    out = tmp_path / "gop.png"
    lines_of(reelseek_command, clip_path(name), 3, 40, "--out", out)
    assert out.read_bytes().startswith(b"\x89PNG")


def test_no_video_and_no_such_frame_are_exit_status_1(reelseek_command: Run) -> None:
    for arguments in ((clip_path("text.mp4"), 0), (clip_path("av1_g2.mp4"), 999)):
        done = reelseek_command("explain", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error: ")
    assert reelseek_command("explain", clip_path("av1_g2.mp4"), "first").returncode == 2
