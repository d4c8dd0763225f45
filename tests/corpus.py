"""Tiny videos named for their oddity, each with the recipe that makes it.

Most clips show their own frame number as ten black or white bars: bit ``b`` of the number is
the value at ``x = 32 * b + 16`` in the middle row, above 128. The bars survive lossy coding, so
"which frame did I get?" has an exact answer for every codec and every decoder.

The clips are made by the ffmpeg program that the ``imageio-ffmpeg`` wheel carries, so they need
neither a system FFmpeg nor the network. They are made once per machine: the folder is keyed by
a hash of all recipes and of the encoder's version.

Run ``python -m tests.corpus FOLDER`` to make all of them in a folder of your own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests import surgery
from tests.patience import PATIENCE

RECIPES = ("corpus.py", "structures.py", "surgery.py")
"""The files beside this one that say what clips are made of."""

Make = Callable[[Path, Callable[[str], Path]], None]
"""Writes the clip to the path; the second argument gives another clip by name."""


@dataclass(frozen=True, slots=True)
class Clip:
    """One file of the corpus."""

    name: str
    """File name, with the suffix that decides the container."""
    oddity: str
    """What is unusual in it, as a phrase."""
    make: Make
    """The recipe."""
    bars: bool = True
    """True where the frames show a number."""
    shows: Callable[[int], int] = int
    """The number that a frame shows, from its own number."""
    sound: bool = True
    """False for a file that no decoder should open."""
    whole: bool = True
    """False for a damaged file: its frames may be refused one by one."""
    eight_bit_420: bool = True
    """True where all backends that use FFmpeg's scaler must give equal bits."""


@cache
def ffmpeg_program() -> str:
    """The path of the ffmpeg program in the ``imageio-ffmpeg`` wheel."""
    import imageio_ffmpeg

    return str(imageio_ffmpeg.get_ffmpeg_exe())


def bars(rate: str = "30", seconds: float = 4) -> str:
    """A lavfi source whose every frame shows its own number."""
    picture = "lum='if(mod(floor(N/pow(2,floor(X/32))),2),235,16)':cb=128:cr=128"
    return f"nullsrc=s=320x64:r={rate}:d={seconds},geq={picture},format=yuv420p"


@cache
def _before_encoding() -> tuple[str, ...]:
    """What to put before a command that encodes, where this machine takes it.

    Run by root, SVT-AV1 makes its threads real-time ones, and nothing else has their cores.
    """
    before = ("setpriv", "--bounding-set", "-sys_nice", "--")
    try:
        done = subprocess.run([*before, "true"], capture_output=True, check=False, timeout=PATIENCE)
    except FileNotFoundError:
        return ()
    return before if done.returncode == 0 else ()


def ffmpeg(*arguments: str | Path) -> None:
    """Run the ffmpeg program, and raise with its own words where it fails."""
    command = [ffmpeg_program(), "-v", "error", "-y", "-bitexact", *map(str, arguments)]
    command = [*_before_encoding(), *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")


def encoded(options: str, *, source: str | None = None) -> Make:
    """A recipe: encode the bars (or another lavfi source) with these options."""

    def make(path: Path, _other: Callable[[str], Path]) -> None:
        ffmpeg("-f", "lavfi", "-i", source or bars(), *options.split(), path)

    return make


def remuxed(clip: str, options: str = "", *, before: str = "") -> Make:
    """A recipe: copy the stream of another clip, with options before and after the input."""

    def make(path: Path, other: Callable[[str], Path]) -> None:
        ffmpeg(*before.split(), "-i", other(clip), "-c", "copy", *options.split(), path)

    return make


def changed(clip: str, change: Callable[[bytes], bytes]) -> Make:
    """A recipe: another clip's bytes, changed."""

    def make(path: Path, other: Callable[[str], Path]) -> None:
        path.write_bytes(change(other(clip).read_bytes()))

    return make


def joined(*clips: str) -> Make:
    """A recipe: several clips, one after the other in one file, by stream copy."""

    def make(path: Path, other: Callable[[str], Path]) -> None:
        listing = path.with_suffix(".txt")
        listing.write_text("".join(f"file '{other(clip)}'\n" for clip in clips))
        ffmpeg("-f", "concat", "-safe", "0", "-i", listing, "-c", "copy", path)
        listing.unlink()

    return make


def remade(clip: str, change: Callable[[Path, Path], None]) -> Make:
    """A recipe: another clip's packets, changed and put together again."""

    def make(path: Path, other: Callable[[str], Path]) -> None:
        change(other(clip), path)

    return make


def joined_by_hand(options: Sequence[str], join: Callable[[Path, Path, Path], None]) -> Make:
    """A recipe: the bars encoded by x264 in two ways, 60 frames each, put into one file."""

    def make(path: Path, _other: Callable[[str], Path]) -> None:
        parts = [path.with_suffix(f".{number}.mp4") for number in range(len(options))]
        for number, (part, option) in enumerate(zip(parts, options, strict=True)):
            rest = bars().replace("floor(N/", f"floor((N+{60 * number})/")
            ffmpeg("-f", "lavfi", "-i", rest, *f"-c:v libx264 -g 30 {option}".split(),
                   "-frames:v", "60", part)  # fmt: skip
        first, second = parts
        join(first, second, path)
        for part in parts:
            part.unlink()

    return make


def two_pass(options: str) -> Make:
    """A recipe: encode the bars in two passes, as libvpx needs for hidden frames."""

    def make(path: Path, _other: Callable[[str], Path]) -> None:
        for number, target in (("1", Path("-f null -")), ("2", path)):
            passes = ("-pass", number, "-passlogfile", path.with_suffix(".log"))
            ffmpeg("-f", "lavfi", "-i", bars(), *options.split(), *passes, *str(target).split())

    return make


def two_sizes(path: Path, _other: Callable[[str], Path]) -> None:
    """A recipe: VP9 whose picture size changes after 30 frames."""
    listing = path.with_suffix(".txt")
    parts = [path.with_name(f"{size}.webm") for size in ("320x64", "160x64")]
    for part in parts:
        source = f"testsrc2=s={part.stem}:r=30:d=1"
        ffmpeg("-f", "lavfi", "-i", source, *"-c:v libvpx-vp9 -g 10 -deadline realtime".split(),
               part)  # fmt: skip
    listing.write_text("".join(f"file '{part}'\n" for part in parts))
    ffmpeg("-f", "concat", "-safe", "0", "-i", listing, "-c", "copy", path)


def two_videos(path: Path, _other: Callable[[str], Path]) -> None:
    """A recipe: a shorter video of another rate before the one marked as the default."""
    inputs = ("-f", "lavfi", "-i", bars("15", 2), "-f", "lavfi", "-i", bars())
    marks = "-disposition:v:0 0 -disposition:v:1 default"
    ffmpeg(*inputs, *f"-map 0 -map 1 -c:v libx264 -g 20 {marks}".split(), path)


def with_cover(path: Path, other: Callable[[str], Path]) -> None:
    """A recipe: a cover picture beside the video."""
    cover = path.with_suffix(".png")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=64x64", "-frames:v", "1", cover)
    options = "-map 1 -map 0 -c copy -disposition:v:0 attached_pic"
    ffmpeg("-i", other("b_frames.mp4"), "-i", cover, *options.split(), path)


def with_audio(path: Path, _other: Callable[[str], Path]) -> None:
    """A recipe: an audio track before the video track."""
    inputs = ("-f", "lavfi", "-i", "sine=d=4", "-f", "lavfi", "-i", bars())
    ffmpeg(*inputs, *"-map 0 -map 1 -c:a aac -c:v libx264 -bf 2".split(), path)


def sound_only(path: Path, _other: Callable[[str], Path]) -> None:
    """A recipe: a file with no video stream."""
    ffmpeg("-f", "lavfi", "-i", "sine=d=1", "-c:a", "aac", path)


def head(share: float) -> Callable[[bytes], bytes]:
    """Keep only this share of the file's start."""
    return lambda data: data[: int(len(data) * share)]


def flipped(data: bytes) -> bytes:
    """Turn 400 bytes in the middle of the media data into noise."""
    start = data.index(b"mdat") + 4
    size = int.from_bytes(data[start - 8 : start - 4], "big") - 8
    middle = start + size // 3
    noise = np.random.default_rng(5).integers(0, 256, 400, dtype=np.uint8).tobytes()
    return data[:middle] + noise + data[middle + 400 :]


def zeroed(data: bytes) -> bytes:
    """Zero the last 30 per cent, as a crashed copy leaves a file."""
    keep = int(len(data) * 0.7)
    return data[:keep] + bytes(len(data) - keep)


def fewer_listed(data: bytes) -> bytes:
    """Take 20 from the number of samples in the table of sample sizes, and in no other table."""
    count = data.index(b"stsz") + 12
    listed = int.from_bytes(data[count : count + 4], "big") - 20
    return data[:count] + listed.to_bytes(4, "big") + data[count + 4 :]


DROPPED = tuple(number for number in range(120) if number % 17 != 5)
"""What the frames of that clip show."""
X264 = "-c:v libx264 -crf 12"
SVT = "-c:v libsvtav1 -preset 10 -crf 20"
ODD_SIZE = "testsrc2=s=240x320:r=30:d=1,scale=241:321"
COLOURS = "smptebars=s=320x64:r=10:d=1"


def colour(matrix: str, full: bool, *, tagged: bool) -> Make:
    """A recipe: colour bars in this matrix and range, with or without tags that say so."""
    value_range = "full" if full else "limited"
    scaled = f"{COLOURS},scale=out_color_matrix={matrix}:out_range={value_range},format=yuv420p"
    space = {"bt709": "bt709", "bt601": "smpte170m"}[matrix]
    if not tagged:
        scaled += ",setparams=range=unspecified:colorspace=unknown"
        return encoded(f"{X264} -bf 0", source=scaled)
    scaled += f",setparams=range={value_range}:colorspace={space}"
    return encoded(f"{X264} -bf 0 -colorspace {space}", source=scaled)


LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 12345\n"
)

CLIPS: tuple[Clip, ...] = (
    Clip("b_frames.mp4", "three B-frames", encoded(f"{X264} -g 30 -bf 3")),
    Clip("b_pyramid_8.mp4", "an 8-frame B pyramid",
         encoded(f"{X264} -g 60 -bf 8 -x264-params b-pyramid=normal:b-adapt=0")),
    Clip("starts_late.mp4", "the first frame at 1.5 s",
         encoded(f"{X264} -g 30 -bf 3 -output_ts_offset 1.5")),
    Clip("trimmed.mp4", "trimmed by an edit list, without re-encoding",
         remuxed("b_frames.mp4", before="-ss 0.7"), shows=lambda frame: frame + 21),
    Clip("trimmed_end.mp4", "the end cut by stream copy", remuxed("b_frames.mp4", "-t 2.05")),
    Clip("edit_list_ignored_tail.mp4", "an edit list that starts in the last GOP",
         remuxed("b_frames.mp4", before="-ss 3.3"), shows=lambda frame: frame + 99),
    Clip("variable_rate.mp4", "variable frame rate",
         encoded("-vf setpts='if(gt(N,30),PTS*1.5-0.5/TB,PTS)' -fps_mode vfr -c:v libx264 -bf 0")),
    Clip("dropped.mp4", "camera frames dropped",
         encoded("-vf select='not(eq(mod(n,17),5))' -fps_mode passthrough -c:v libx264 -bf 2"),
         shows=DROPPED.__getitem__),
    Clip("ntsc.mp4", "29.97 frames a second", encoded("-c:v libx264 -bf 2",
                                                      source=bars("30000/1001", 10))),
    Clip("one_gop.mp4", "one GOP of 150", encoded(f"{X264} -g 150", source=bars(seconds=5))),
    Clip("open_gop.mp4", "H.264 with open GOPs",
         encoded(f"{X264} -g 24 -bf 3 -x264-params open-gop=1:scenecut=0")),
    Clip("intra_refresh.mp4", "H.264 that refreshes by columns, with no second IDR",
         encoded(f"{X264} -g 24 -bf 0 -x264-params intra-refresh=1")),
    Clip("interlaced.mp4", "H.264 coded as interlaced",
         encoded(f"{X264} -g 24 -bf 2 -flags +ilme+ildct -x264-params tff=1")),
    Clip("joined.mp4", "three clips joined by stream copy",
         joined("b_frames.mp4", "trimmed.mp4", "b_frames.mp4"), shows=lambda frame: frame % 120),
    Clip("hevc.mp4", "HEVC", encoded("-c:v libx265 -x265-params log-level=error -g 30")),
    Clip("hevc_short_gop.mp4", "HEVC with a key frame every other frame",
         encoded("-c:v libx265 -x265-params log-level=error:keyint=2:min-keyint=2")),
    Clip("hevc_open_gop.mp4", "HEVC with open GOPs and RASL pictures",
         encoded("-c:v libx265 -x265-params log-level=error:keyint=20:min-keyint=20:open-gop=1")),
    Clip("hevc_closed_gop.mp4", "HEVC with closed GOPs",
         encoded("-c:v libx265 -x265-params log-level=error:keyint=20:min-keyint=20:open-gop=0")),
    Clip("hevc_trimmed.mp4", "HEVC with open GOPs, trimmed by an edit list",
         remuxed("hevc_open_gop.mp4", before="-ss 1.1"), shows=lambda frame: frame + 33),
    Clip("av1_g2.mp4", "AV1, a key frame every other frame", encoded(f"{SVT} -g 2")),
    Clip("av1_g20.mp4", "AV1, GOP of 20", encoded(f"{SVT} -g 20")),
    Clip("av1_default.mp4", "AV1 at SVT-AV1's default GOP", encoded(SVT)),
    Clip("av1_libaom.mp4", "AV1 by libaom, with hidden frames",
         encoded("-c:v libaom-av1 -cpu-used 8 -crf 20 -g 60")),
    Clip("av1_rav1e.mp4", "AV1 by rav1e", encoded("-c:v librav1e -speed 10 -qp 60 -g 60")),
    Clip("av1_forward_key.mp4", "AV1 whose second key frame is hidden, and shown by its slot",
         remade("av1_g20.mp4", surgery.with_forward_key)),
    Clip("sets_once.mp4", "H.264 whose parameter sets change on the way, and are sent once",
         joined_by_hand(["-qp 20 -bf 2", "-qp 40 -bf 2"], surgery.sets_in_the_next_key_frame)),
    Clip("sets_in_b_frame.mp4", "H.264 whose new parameter sets come in a picture that nothing "
         "refers to", joined_by_hand(["-qp 20 -bf 2", "-qp 40 -bf 2"],
                                     surgery.sets_in_the_last_picture)),
    Clip("no_reorder_limit.mp4", "H.264 with a B pyramid that doesn't say how far it reorders",
         changed("b_pyramid_8.mp4", surgery.without_vui)),
    Clip("turned_movie.mp4", "turned by 180 degrees by the movie's matrix, not the track's",
         changed("b_frames.mp4", surgery.with_turned_movie)),
    Clip("container_colours.mkv", "Matroska with colours that the stream doesn't say",
         remuxed("bt601_limited_untagged.mp4", "-colorspace bt709"), bars=False),
    Clip("audio_first.mp4", "an audio track before the video", with_audio),
    Clip("matroska.mkv", "Matroska, whose times are rounded to milliseconds",
         encoded("-c:v libx264 -bf 2")),
    Clip("av1.webm", "AV1 in WebM", encoded(f"{SVT} -g 30")),
    Clip("av1.mkv", "AV1 by libaom in Matroska", remuxed("av1_libaom.mp4")),
    Clip("vp9.webm", "VP9 in WebM",
         encoded("-c:v libvpx-vp9 -g 30 -deadline realtime -cpu-used 8")),
    Clip("vp9.mp4", "VP9 with hidden frames, in MP4",
         encoded("-c:v libvpx-vp9 -g 30 -deadline good -cpu-used 8 -auto-alt-ref 1 "
                 "-lag-in-frames 25")),
    Clip("vp9_trimmed.mp4", "VP9 trimmed by an edit list",
         remuxed("vp9.mp4", before="-ss 0.7"), shows=lambda frame: frame + 21),
    Clip("vp8.webm", "VP8 with hidden frames in packets of their own",
         two_pass("-c:v libvpx -g 30 -b:v 1M -deadline good -cpu-used 4 -auto-alt-ref 1 "
                  "-lag-in-frames 16")),
    Clip("mpeg4.mp4", "MPEG-4 part 2 with B-frames", encoded("-c:v mpeg4 -q:v 2 -bf 2 -g 30")),
    Clip("mpeg2.mpg", "an MPEG program stream, which stores few timestamps",
         encoded("-c:v mpeg2video -g 15 -bf 2")),
    Clip("h264.avi", "H.264 with B-frames in AVI, which stores no presentation timestamps",
         encoded(f"{X264} -bf 2")),
    Clip("mjpeg.avi", "Motion JPEG in AVI", encoded("-c:v mjpeg -q:v 2 -pix_fmt yuvj420p")),
    Clip("h264.ts", "an MPEG transport stream", encoded(f"{X264} -bf 2 -g 25")),
    Clip("two_videos.mkv", "two video streams, the second one the default", two_videos),
    Clip("cover.mp4", "a cover picture before the video", with_cover),
    Clip("cropped.mp4", "a picture size in the parameter sets other than the container's",
         encoded(f"{X264} -bf 2 -bsf:v h264_metadata=crop_top=4")),
    Clip("decoding_times.mp4", "decoding times in place of presentation times",
         remuxed("no_timestamps.h264", before="-r 10"), shows=lambda frame: frame + 1),
    Clip("huge_times.mkv", "timestamps far from zero",
         remuxed("b_frames.mp4", "-output_ts_offset 9000000000")),
    Clip("rotated.mp4", "rotated by 90 degrees",
         remuxed("b_frames.mp4", before="-display_rotation 90")),
    Clip("upside_down.mp4", "rotated by 180 degrees",
         remuxed("b_frames.mp4", before="-display_rotation 180")),
    Clip("flipped.mp4", "mirrored by its display matrix",
         remuxed("b_frames.mp4", before="-display_hflip")),
    Clip("odd_size_444.mp4", "odd size, 4:4:4",
         encoded("-c:v libx264 -pix_fmt yuv444p", source=ODD_SIZE),
         bars=False, eight_bit_420=False),
    Clip("odd_size_420.mp4", "odd size, 4:2:0",
         encoded("-c:v libvpx-vp9 -pix_fmt yuv420p -deadline realtime -cpu-used 8",
                 source=ODD_SIZE), bars=False),
    Clip("wide_pixels.mp4", "pixels that are not square",
         encoded(f"{X264} -vf setsar=4/3")),
    Clip("ten_bit.mp4", "H.264 with 10 bits",
         encoded(f"{X264} -pix_fmt yuv420p10le -bf 2"), eight_bit_420=False),
    Clip("ten_bit_hevc.mp4", "HEVC with 10 bits",
         encoded("-c:v libx265 -x265-params log-level=error -pix_fmt yuv420p10le"),
         eight_bit_420=False),
    Clip("ten_bit_av1.mp4", "AV1 with 10 bits",
         encoded(f"{SVT} -g 10 -pix_fmt yuv420p10le"), eight_bit_420=False),
    Clip("grey.mp4", "H.264 with no colour planes", encoded(f"{X264} -pix_fmt gray"),
         eight_bit_420=False),
    Clip("rgb.mkv", "FFV1 in RGB, lossless",
         encoded("-c:v ffv1 -pix_fmt gbrp", source=bars(seconds=1)), eight_bit_420=False),
    *(Clip(f"{matrix}_{'full' if full else 'limited'}_{'tagged' if tagged else 'untagged'}.mp4",
           f"{matrix} colours, {'full' if full else 'limited'} range, "
           f"{'tagged' if tagged else 'without tags'}",
           colour(matrix, full, tagged=tagged), bars=False)
      for matrix in ("bt601", "bt709") for full in (False, True) for tagged in (True, False)),
    Clip("one_frame.mp4", "a single frame", encoded("-frames:v 1 -c:v libx264")),
    Clip("no_moov_duration.mp4", "fragmented: no sample table in moov",
         encoded(f"{X264} -g 30 -bf 3 -movflags frag_keyframe+empty_moov+default_base_moof")),
    Clip("faststart.mp4", "moov in front", encoded(f"{X264} -g 30 -bf 3 -movflags +faststart")),
    Clip("duplicates.mp4", "each picture shown three times",
         encoded("-vf fps=30 -c:v libx264 -bf 2", source=bars("10", 4)),
         shows=lambda frame: frame // 3),
    Clip("no_timestamps.h264", "a raw H.264 stream, without timestamps",
         encoded(f"{X264} -g 30 -bf 2 -f h264")),
    # Damaged: frames may be refused one by one, but none may be wrong.
    Clip("cut_moov_in_front.mp4", "cut at 60 per cent, moov in front",
         changed("faststart.mp4", head(0.6)), whole=False),
    Clip("cut_fragmented.mp4", "a fragmented file, cut at 60 per cent",
         changed("no_moov_duration.mp4", head(0.6)), whole=False),
    Clip("noise_in_media.mp4", "400 bytes of noise in H.264 media data",
         changed("faststart.mp4", flipped), whole=False),
    Clip("noise_in_av1.mp4", "400 bytes of noise in AV1 media data",
         changed("av1_g20.mp4", flipped), whole=False),
    Clip("noise_in_hevc.mp4", "400 bytes of noise in HEVC media data",
         changed("hevc.mp4", flipped), whole=False),
    Clip("zeroed_tail.mp4", "the last 30 per cent zeroed",
         changed("faststart.mp4", zeroed), whole=False),
    Clip("zeroed_tail_av1.mp4", "AV1, moov in front, the last 30 per cent zeroed",
         changed("av1_faststart.mp4", zeroed), whole=False),
    Clip("av1_faststart.mp4", "AV1, moov in front", remuxed("av1_g20.mp4", "-movflags +faststart")),
    Clip("two_sizes.webm", "a picture size that changes after 30 frames", two_sizes,
         bars=False, whole=False),
    Clip("fewer_listed.mp4", "tables that disagree on the number of samples",
         changed("faststart.mp4", fewer_listed), whole=False),
    # Not videos: nothing may open them.
    Clip("no_frame.mp4", "a video track with no frame",
         encoded("-frames:v 0 -c:v libx264 -movflags empty_moov"), sound=False),
    Clip("empty.mp4", "an empty file", changed("b_frames.mp4", head(0)), sound=False),
    Clip("cut_no_moov.mp4", "cut at 90 per cent, so that moov is gone",
         changed("b_frames.mp4", head(0.9)), sound=False),
    Clip("text.mp4", "a text file", changed("b_frames.mp4", lambda _: b"not a video\n" * 9),
         sound=False),
    Clip("lfs_pointer.mp4", "a Git LFS pointer", changed("b_frames.mp4", lambda _: LFS_POINTER),
         sound=False),
    Clip("sound_only.mp4", "no video stream", sound_only, sound=False),
)  # fmt: skip

BY_NAME = {clip.name: clip for clip in CLIPS}


@cache
def corpus_folder() -> Path:
    """The folder of this version of the corpus, empty until clips are asked for."""
    version = subprocess.run(
        [ffmpeg_program(), "-version"], capture_output=True, check=True, timeout=PATIENCE
    )
    here = Path(__file__).parent
    recipes = b"".join(here.joinpath(name).read_bytes() for name in RECIPES)
    key = hashlib.sha256(version.stdout + recipes).hexdigest()[:16]
    root = Path(os.environ.get("REELSEEK_TEST_CORPUS") or Path(tempfile.gettempdir()))
    folder = root / f"reelseek-corpus-{os.getuid()}" / key
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def clip_path(name: str) -> Path:
    """The path of a clip, made first where it isn't there yet."""
    return made(BY_NAME[name], corpus_folder())


def made(clip: Clip, folder: Path) -> Path:
    """The path of a clip in this folder, made first where it isn't there yet."""
    path = folder / clip.name
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            temporary = Path(scratch) / clip.name
            clip.make(temporary, lambda other: made(BY_NAME[other], folder))
            temporary.replace(path)
    return path


def number_shown(frame: NDArray[np.uint8]) -> int:
    """The number that a frame of bars shows; ``frame`` is (H, W, 3)."""
    height = frame.shape[0]
    bits = frame[height // 2, 16::32, 1] > 128
    return int(sum(1 << bit for bit, on in enumerate(bits) if on))


def main(arguments: Sequence[str]) -> None:
    """Make every clip in the folder named first."""
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for clip in CLIPS:
        path = made(clip, folder)
        print(f"{path.stat().st_size:9,} bytes  {clip.name}: {clip.oddity}")


if __name__ == "__main__":
    if not shutil.which(ffmpeg_program()):
        sys.exit("the imageio-ffmpeg wheel carries no ffmpeg program for this platform")
    main(sys.argv[1:])
