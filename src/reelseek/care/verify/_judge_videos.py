"""A video's facts against what its episodes need of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reelseek.care.verify._clocks import TOLERANCE, ClockFault, rate_fault, spacing_fault
from reelseek.care.verify._codes import NOT_RESTAMPED, found, is_mended_by_times, size_remedy
from reelseek.care.verify._findings import Finding
from reelseek.care.verify._video_facts import times_of
from reelseek.care.verify._windows import Part, Placed, place_parts, unused_runs

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Video:
    """One video of a camera, looked into."""

    path: str
    """Relative to the dataset."""
    camera: str
    """The camera's key."""
    facts: dict[str, Any]
    """See ``video_facts``."""
    parts: tuple[Part, ...]
    """The episodes whose frames it should hold; none where meta can't be read."""
    is_shared: bool
    """True where several episodes may share a file (v3)."""
    fps: float | None
    """The dataset's frames a second; None where info.json can't be read."""

    @property
    def num_frames(self) -> int:
        """The frames that can be read."""
        return int(self.facts.get("num_frames", 0))

    @property
    def tick(self) -> float:
        """The tick of its clock, in seconds."""
        numerator, denominator = self.facts["time_base"]
        return float(numerator / denominator)

    @property
    def episode(self) -> int | None:
        """The episode whose own file it is."""
        return self.parts[0].episode if len(self.parts) == 1 else None

    @property
    def has_frames_of_rows(self) -> bool:
        """True where its frames are as many as its episodes' rows, as far as these are known."""
        rows = sum(part.rows for part in self.parts)
        return not self.parts or self.num_frames == rows

    def found(self, code: str, what: str, **where: Any) -> Finding:
        """A finding about this file."""
        where = {"episode": self.episode, **where}
        if is_mended_by_times(code) and not self.has_frames_of_rows:
            where["remedy"] = NOT_RESTAMPED
        return found(code, what, path=self.path, camera=self.camera, **where)

    def placed(self) -> list[Placed]:
        """Where its episodes' parts are; nothing where its times can't tell."""
        seconds = None if "fault" in self.facts else times_of(self.facts)
        if seconds is None or self.fps is None or not self.parts:
            return []
        if self.is_shared:
            return place_parts(list(self.parts), seconds, self.fps)
        return [Placed(self.parts[0], 0, len(seconds), 0.0, len(seconds))]


def judge_video(video: Video) -> Iterator[Finding]:
    """What is wrong with one video, but for its pictures."""
    facts = video.facts
    if "fault" in facts:
        fault = facts["fault"]
        yield video.found(fault["code"], fault["what"], remedy=fault["remedy"])
        return
    if facts["cut"]:
        yield video.found(facts["cut"], _cut_text(video))
        return
    yield from _damage(video)
    yield from _open_gops(video)
    if not facts["has_one_size"]:
        what = "the picture size changes within the file"
        yield video.found("mixed-size", what, remedy=size_remedy(*facts["size"]))
    seconds = times_of(facts)
    if seconds is None:
        yield video.found("times-absent", "the file gives its frames no times")
        yield from _count(video)
    elif np.any(np.diff(seconds) <= 0):
        at = int(np.flatnonzero(np.diff(seconds) <= 0)[0])
        what = f"frame {at + 1} is at {seconds[at + 1]:.4f} s, after frame {at} at "
        yield video.found("times-not-increasing", f"{what}{seconds[at]:.4f} s", frames=(at, at + 1))
        yield from _count(video)
    elif video.fps is not None:
        yield from _clock(video, seconds, video.fps)


def _cut_text(video: Video) -> str:
    listed = video.facts["num_listed"]
    of = f" of {listed}" if listed and listed > video.num_frames else ""
    return f"{video.num_frames}{of} frames can be read"


def _damage(video: Video) -> Iterator[Finding]:
    for first, last in video.facts["damaged"]:
        what = "the frames' bytes can't be what an encoder wrote"
        yield video.found("video-corrupt", what, frames=(first, last))
    decoded = video.facts["decoded"]
    if decoded is None or video.facts["damaged"]:
        return
    for first, last in decoded["corrupt"]:
        what = "the decoder had to invent parts of the pictures"
        yield video.found("video-corrupt", what, frames=(first, last))
    count = decoded["num_frames"]
    if decoded["fault"]:
        what = f"decoding ends after {count} of {video.num_frames} frames: {decoded['fault']}"
        yield video.found("video-corrupt", what, frames=(count, max(count, video.num_frames - 1)))
    elif not decoded["corrupt"] and count != video.num_frames:
        what = f"{count} frames can be decoded of {video.num_frames}"
        yield video.found("video-corrupt", what)
    elif not decoded["corrupt"] and decoded["misplaced"] is not None:
        what = f"decoding puts another frame where frame {decoded['misplaced']} belongs"
        yield video.found("video-corrupt", what, frames=(decoded["misplaced"],) * 2)


def _open_gops(video: Video) -> Iterator[Finding]:
    frames = video.facts["open_gop"]
    if frames and not video.facts["damaged"]:
        what = f"{len(frames)} key frames are no clean start, first frame {frames[0]}"
        yield video.found("open-gop", what, frames=(frames[0], frames[-1]))


def _count(video: Video) -> Iterator[Finding]:
    """Frames against rows by number alone, where times don't tell more."""
    rows = sum(part.rows for part in video.parts)
    listed = sum(part.listed for part in video.parts)
    if video.parts and video.num_frames != listed:
        yield from _difference(video, rows - video.num_frames, rows, video.num_frames, 0)


def _difference(
    video: Video, missing: int, rows: int, count: int, first: int, **where: Any
) -> Iterator[Finding]:
    """The finding for an episode that needs ``rows`` frames and has ``count`` from ``first`` on."""
    what = f"{count} frames for {rows} rows"
    if missing == 1:
        yield video.found("frames-one-missing", f"{what}: one frame too few", **where)
    elif missing > 1:
        yield video.found("frames-missing", f"{what}: {missing} frames too few", **where)
    elif missing < 0:
        extra = (first + rows, first + count - 1)
        what += f": {-missing} left, as after a take that was recorded again"
        yield video.found("frames-extra", what, frames=extra, **where)


def _clock(video: Video, seconds: Seconds, fps: float) -> Iterator[Finding]:
    rate = rate_fault(seconds, fps, video.tick)
    if rate is not None:
        yield video.found(rate.code, rate.what, frames=rate.frames)
        yield from _count(video)
    elif not video.parts:
        spacing = spacing_fault(seconds, fps, video.tick)
        if spacing is not None:
            yield video.found(spacing.code, spacing.what, frames=spacing.frames)
    elif video.is_shared:
        yield from _shared(video, seconds, fps)
    else:
        yield from _whole(video, seconds, fps)


def _whole(video: Video, seconds: Seconds, fps: float) -> Iterator[Finding]:
    """A file that is one episode's own."""
    part, count = video.parts[0], len(seconds)
    spacing = spacing_fault(seconds, fps, video.tick)
    yield from _spacing(video, spacing, 0)
    missing = part.missing_of(count)
    if not _explains(spacing, missing):
        yield from _difference(video, missing, part.rows, count, 0)
    off, slack = float(seconds[0]), TOLERANCE + video.tick / 2
    if abs(off) > slack and abs(off - part.rows_start) > slack:
        what = f"the first frame is at {off:.4f} s, and the first row at {part.rows_start:.4f} s"
        yield video.found("camera-offset", what, frames=(0, 0))


def _spacing(video: Video, fault: ClockFault | None, first: int, **where: Any) -> Iterator[Finding]:
    if fault is not None:
        frames = fault.frames and (fault.frames[0] + first, fault.frames[1] + first)
        yield video.found(fault.code, fault.what, frames=frames, **where)


def _explains(spacing: ClockFault | None, missing: int) -> bool:
    """True where the frames that were dropped are those that rows lack."""
    return spacing is not None and missing > 0 and spacing.num_dropped == missing


def _shared(video: Video, seconds: Seconds, fps: float) -> Iterator[Finding]:
    """A file of several episodes."""
    shift = _common_offset(video, seconds, fps)
    if shift:
        what = f"all {len(video.parts)} episodes start {shift:+.4f} s off their frames"
        yield video.found("camera-offset", what)
        seconds = seconds - shift
    placed = place_parts(list(video.parts), seconds, fps)
    for number, one in enumerate(placed):
        after = placed[number + 1] if number + 1 < len(placed) else None
        yield from _part(video, one, after, seconds, fps)
    for first, last in unused_runs(placed, len(seconds)):
        if not shift:
            what = f"{last - first + 1} frames are no episode's, as after a take that was recorded "
            yield video.found("frames-extra", f"{what}again", frames=(first, last), episode=None)


def _common_offset(video: Video, seconds: Seconds, fps: float) -> float:
    """By how much all parts are off their frames alike, in seconds; 0 where they aren't."""
    first = min(part.start for part in video.parts)
    off = float(seconds[0]) - first
    if abs(off) <= TOLERANCE + video.tick / 2:
        return 0.0
    before = place_parts(list(video.parts), seconds, fps)
    after = place_parts(list(video.parts), seconds - off, fps)
    fits = all(one.is_on_frame for one in after) and after[-1].wanted_end == len(seconds)
    return off if fits and not _fits(before, len(seconds)) else 0.0


def _fits(placed: list[Placed], num_frames: int) -> bool:
    return (
        all(one.is_on_frame and one.wanted_end <= num_frames for one in placed)
        and not unused_runs(placed, num_frames)
    )  # fmt: skip


def _part(
    video: Video, one: Placed, after: Placed | None, seconds: Seconds, fps: float
) -> Iterator[Finding]:
    """One episode's part of a shared file."""
    part, total = one.part, len(seconds)
    where = {"episode": part.episode}
    if one.first >= total:
        what = f"it starts at {part.start:.4f} s, after the video's last frame"
        yield video.found("window-past-end", what, **where)
        return
    if abs(one.off) > TOLERANCE + video.tick / 2:
        what = f"it starts at {part.start:.4f} s, {abs(one.off) * 1000:.2f} ms from a frame"
        yield video.found("window-off-frame", what, frames=(one.first, one.first), **where)
        return
    if after is not None and one.end > after.first:
        shared = (after.first, min(one.end, total) - 1)
        what = f"it shares {one.end - after.first} frames with episode {after.part.episode}"
        yield video.found("window-overlap", what, frames=shared, **where)
        return
    spacing = spacing_fault(seconds[one.first : min(one.end, one.first + part.rows)], fps,
                            video.tick)  # fmt: skip
    yield from _spacing(video, spacing, one.first, **where)
    missing = part.missing_of(one.count)
    if _explains(spacing, missing):
        return
    if missing > 1 and one.wanted_end > total:
        what = f"it has {part.rows} rows, and {one.count} frames are left from frame {one.first} on"
        yield video.found("window-past-end", what, **where)
        return
    yield from _difference(video, missing, part.rows, one.count, one.first, **where)
