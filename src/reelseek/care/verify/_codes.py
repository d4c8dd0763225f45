"""Every kind of finding: its code, how bad it is, what it means, and what to do.

``docs/verify.md`` shows this table, and a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reelseek.care.verify._findings import Finding, Severity

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding."""

    name: str
    """Stable, in kebab case."""
    severity: Severity
    """How bad it is."""
    meaning: str
    """What is wrong, in general."""
    remedy: str
    """What to do about it."""


_COPY = "Copy the file again from its source, and compare the sizes"
_META = "Copy the dataset's meta folder again, or correct the file"
_TOGETHER = "Copy the dataset again: its data, videos and meta folders don't belong together"
_INFO = "Correct meta/info.json"
_REENCODE = "Re-encode the dataset: `reelseek reencode DATASET OUT`"
_RESTAMP = "Put each frame at its number / fps: `reelseek reencode DATASET OUT --restamp`"
_MODALITY = "Correct meta/modality.json"
_LFS = "Run `git lfs pull` in the dataset's folder"

_CODES = (
    # Files
    Code("video-missing", ERROR, "A video of an episode isn't there.",
         "Copy or download the dataset's videos folder again"),
    Code("video-empty", ERROR, "A video has no bytes.", _COPY),
    Code("video-lfs-pointer", ERROR, "A video is a Git LFS pointer.", _LFS),
    Code("video-truncated", ERROR, "A video's end is missing, or its recording never finished.",
         _COPY),
    Code("video-corrupt", ERROR, "A video is damaged inside.", _COPY),
    Code("video-no-video", ERROR, "A file is no video, or has no video stream or no frame.",
         "Check what the file is, and copy or record it again"),
    Code("video-unreadable", ERROR, "A video can't be read.", _COPY),
    Code("camera-without-files", ERROR, "No episode has a video of a camera in info.json.",
         "Copy the camera's videos, or take the camera out of info.json"),
    Code("camera-unused", NOTE,
         "info.json lists a camera without files, which modality.json doesn't use.",
         "Take the camera out of info.json"),
    Code("parquet-missing", ERROR, "A parquet file of an episode isn't there.",
         "Copy or download the dataset's data folder again"),
    Code("parquet-empty", ERROR, "A parquet file has no bytes.", _COPY),
    Code("parquet-lfs-pointer", ERROR, "A parquet file is a Git LFS pointer.", _LFS),
    Code("parquet-unreadable", ERROR, "A parquet file is damaged or can't be read.", _COPY),
    Code("meta-missing", ERROR, "A file of the meta folder isn't there.",
         "Copy or download the dataset's meta folder again"),
    Code("meta-lfs-pointer", ERROR, "A file of the meta folder is a Git LFS pointer.", _LFS),
    Code("meta-unreadable", ERROR, "A file of the meta folder is damaged, or says what can't be.",
         _META),
    Code("file-unused", NOTE, "No episode refers to a video or parquet file.",
         "Delete it if it isn't needed"),
    Code("check-failed", ERROR, "A file could not be checked.",
         "Check its permissions, and that the disk or NAS is mounted on all machines; then run the "
         "command again"),
    # Frames against rows
    Code("frames-one-missing", ERROR, "A video has one frame less than its episode has rows.",
         "Drop the episode's last row in data and meta, or record the episode again"),
    Code("frames-missing", ERROR, "A video has fewer frames than its episode has rows.",
         "Copy the video again, or take the episode out of the dataset"),
    Code("frames-extra", ERROR,
         "A video has more frames than rows, as after a take that was recorded again: rows may "
         "belong to other frames.",
         "Compare the first and last frames with the rows; if the first ones fit, cut the others "
         "off, else take the episode out"),
    Code("window-past-end", ERROR, "An episode's part of a shared video ends after the video.",
         _TOGETHER),
    Code("window-overlap", ERROR, "Two episodes share frames of one video.", _TOGETHER),
    Code("window-off-frame", ERROR, "An episode's part of a shared video starts at no frame.",
         _TOGETHER),
    # Times
    Code("fps-ntsc", ERROR, "A video has 29.97 frames a second, and info.json says 30 (or 59.94 "
         "and 60, 23.976 and 24, ...).",
         _RESTAMP),
    Code("fps-wrong", ERROR, "A video has another frame rate than info.json says.",
         "If the frames were taken at info.json's rate, put them there: `reelseek reencode DATASET "
         "OUT --restamp`; else correct the fps in meta/info.json and the timestamps in data"),
    Code("times-drift", ERROR, "A video's frames slowly leave the times of the rows.", _RESTAMP),
    Code("times-dropped-frames", ERROR, "Frames were dropped: a video's times jump.",
         "Take the episode out, or re-encode it with its last frame repeated in the gaps"),
    Code("times-variable", ERROR, "A video's frames are spaced unevenly.", _RESTAMP),
    Code("times-not-increasing", ERROR, "Several frames have one time, or times go back.",
         _RESTAMP),
    Code("times-absent", ERROR, "A video gives its frames no times.", _RESTAMP),
    Code("times-coarse", WARNING, "A video's clock is too coarse for the frame rate: rounded "
         "times are further off than LeRobot's tolerance of 0.1 ms.", _RESTAMP),
    Code("camera-offset", ERROR, "A camera's first frame isn't at the time of the first row.",
         _RESTAMP),
    Code("rows-off-grid", ERROR, "The timestamps of an episode's rows aren't frame number / fps.",
         "Write the timestamp column again as frame_index / fps"),
    Code("rows-start-late", NOTE, "The timestamps of the rows don't start at 0.",
         "Nothing, where all episodes do so: reelseek goes by the count"),
    # Pictures
    Code("frames-frozen", WARNING, "A camera shows one picture for a second or more while the "
         "robot moves.", "Look at these frames; take the episode out if the camera hung"),
    Code("frames-repeated", WARNING, "A camera repeats many of its frames while the robot moves: "
         "it ran at a lower rate than the dataset.",
         "Look at these frames; record or resample at the camera's own rate"),
    Code("frames-black", WARNING, "A camera is black for a second or more.",
         "Look at these frames; take the episode out if the camera was off"),
    # Streams of one camera
    Code("mixed-size", ERROR, "Videos of one camera differ in picture size.",
         "Re-encode them to one size: `reelseek reencode DATASET OUT --size WxH`"),
    Code("mixed-codec", WARNING, "Videos of one camera differ in codec.", _REENCODE),
    Code("mixed-pixel-format", WARNING, "Videos of one camera differ in pixel format.", _REENCODE),
    Code("mixed-time-base", NOTE, "Videos of one camera differ in the ticks of their clock.",
         "Nothing, unless they are to be joined by stream copy"),
    Code("mixed-parameter-sets", NOTE, "Videos of one camera differ in their codec's parameter "
         "sets.", "Nothing, unless they are to be joined by stream copy"),
    Code("open-gop", WARNING, "Decoding can't start cleanly at some key frames: readers that "
         "seek return wrong or broken pictures there.", _REENCODE),
    # info.json against the files
    Code("info-total-episodes", ERROR, "info.json's total_episodes isn't the number of episodes.",
         _INFO),
    Code("info-total-frames", ERROR, "info.json's total_frames isn't the number of rows.", _INFO),
    Code("info-total-tasks", WARNING, "info.json's total_tasks isn't the number of tasks.", _INFO),
    Code("info-total-videos", NOTE, "info.json's total_videos isn't the number of videos.", _INFO),
    Code("info-splits", NOTE, "info.json's splits go past the last episode.", _INFO),
    Code("info-fps", WARNING, "A camera's video.fps isn't the dataset's fps.", _INFO),
    Code("info-shape", ERROR, "A feature's shape in info.json isn't the files'.", _INFO),
    Code("info-dtype", WARNING, "A column's kind in info.json isn't the files'.", _INFO),
    Code("info-codec", WARNING, "A camera's video.codec isn't the files'.", _INFO),
    Code("info-pixel-format", NOTE, "A camera's video.pix_fmt isn't the files'.", _INFO),
    Code("column-missing", ERROR, "A parquet file lacks a column that info.json lists.",
         "Copy the file again from its source, or take the feature out of info.json"),
    Code("column-unlisted", NOTE, "A column isn't in info.json.", "Add it to the features"),
    # GR00T's modality.json
    Code("modality-column", ERROR, "modality.json takes a name from a column that isn't there.",
         _MODALITY),
    Code("modality-slice", ERROR, "modality.json takes more numbers from a column than it has.",
         _MODALITY),
    Code("modality-camera", ERROR, "modality.json takes a name from a camera that isn't there.",
         _MODALITY),
    Code("modality-task", ERROR, "An annotation that modality.json names isn't among the tasks.",
         "Add the task to meta, or correct the column"),
    # Episodes, rows and tasks
    Code("episode-duplicate", ERROR, "meta lists an episode twice.",
         "Delete the wrong entry from meta"),
    Code("episode-gap", ERROR, "Numbers of episodes are left out.",
         "Number the episodes anew from 0, files included"),
    Code("rows-length", ERROR, "An episode has other rows than its length in meta.", _TOGETHER),
    Code("episode-index", ERROR, "Rows name another episode than the one whose file they are in.",
         _TOGETHER),
    Code("frame-index", ERROR, "An episode's frame_index doesn't count its rows from 0.",
         "Write the frame_index column again"),
    Code("row-index", ERROR, "The index column doesn't count the dataset's rows.",
         "Write the index column again"),
    Code("task-unknown", ERROR, "A row's task_index isn't among the tasks.",
         "Add the task to meta, or correct the column"),
    Code("task-duplicate", WARNING, "Two tasks have one number or one text.",
         "Keep one of them, and correct the task_index column"),
    Code("task-gap", NOTE, "Numbers of tasks are left out.", "Nothing, unless code counts on it"),
    Code("episode-tasks", WARNING, "An episode's tasks in meta lack the task of its rows.",
         "Correct the episode's tasks, or the task_index column"),
    Code("value-not-finite", ERROR, "A column holds NaN or infinity.",
         "Repair the values, or take the episode out"),
    Code("value-missing", ERROR, "A column has empty cells.",
         "Fill them in, or take the episode out"),
    Code("value-constant", NOTE, "A number is the same in the whole dataset.",
         "Nothing, for padding or a joint that isn't used; a policy learns nothing from it"),
)  # fmt: skip

CODES: dict[str, Code] = {code.name: code for code in _CODES}
"""All codes by name."""
NOT_RESTAMPED = "Mend the number of frames first: with others than rows, no times would fit them"


def is_mended_by_times(code: str) -> bool:
    """True where ``--restamp`` mends it, which takes as many frames as rows."""
    return "--restamp" in CODES[code].remedy


def size_remedy(width: int, height: int) -> str:
    """The remedy for videos of other sizes than this, the camera's usual one."""
    return CODES["mixed-size"].remedy.replace("WxH", f"{width}x{height}")


def found(code: str, what: str, *, remedy: str = "", **where: Any) -> Finding:
    """A finding of a code, with the code's severity, and its remedy where none is given."""
    known = CODES[code]
    return Finding(code, known.severity, what, remedy or known.remedy, **where)
