"""The sidecar's layout: header, records, directory.

The file is made of plain little-endian numpy blocks rather than Arrow IPC: a look-up touches a few
cells of a sorted array and one record, whereas Arrow's footer and batches would be parsed for all
files before the first is found. It also lets a build append records as they come and leave a valid
beginning wherever it is killed. Records are read by ``pread`` and not by mapping: a mapped file
that is cut, or replaced on another machine of a network file system, ends the process.

::

    header      64 bytes, see Header; its own checksum
    records     one behind the other, each with length, CRC-32 and kind: facts, or one video
    directory   V uint64 CRC-32s of paths, sorted; V uint64 positions of the videos' records

A video's record begins with where its facts are (``FACTS_AT``); see ``_video_record.py`` for the
rest. Nothing is trusted: lengths are bounded by the file, and a record's sum is checked, and its
path compared, whenever it is read, so that damage means a file without an index.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from reelseek.errors import IndexFileError

MAGIC = b"reelseek"
VERSION = 4
"""To be raised with every change of the layout, or of what index_video or build_units find."""
HEADER_BYTES = 64
RECORD_HEAD = struct.Struct("<IIB")
"""The payload's length; the CRC-32 of the kind and the payload; the kind."""
FACTS, VIDEO = 1, 2
_CRC_OF_KIND = {kind: zlib.crc32(bytes([kind])) for kind in (FACTS, VIDEO)}
FACTS_AT = struct.Struct("<Q")
"""The position of the record of a video's facts."""
_HEADER = struct.Struct("<8sIQQQI")


@dataclass(frozen=True, slots=True)
class Header:
    """The beginning of a sidecar."""

    num_videos: int
    """Entries in the directory."""
    directory_at: int
    """Where the directory is; a multiple of 8."""
    num_bytes: int
    """The whole file's size."""
    directory_crc: int
    """CRC-32 of the directory."""

    def pack(self) -> bytes:
        """As bytes."""
        packed = _HEADER.pack(
            MAGIC, VERSION, self.num_videos, self.directory_at, self.num_bytes, self.directory_crc
        )
        packed = packed.ljust(HEADER_BYTES - 4, b"\0")
        return packed + zlib.crc32(packed).to_bytes(4, "little")

    @classmethod
    def unpack(cls, data: bytes, file_bytes: int, path: str) -> Header:
        """From a file's first bytes.

        Raises:
            IndexFileError: The file is none, damaged, cut short or of another version.
        """
        if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
            raise _unusable("no index, or an unfinished one", path)
        magic_version = data[: len(MAGIC) + 4]
        if magic_version != UNFINISHED[: len(MAGIC) + 4]:
            version = int.from_bytes(magic_version[len(MAGIC) :], "little")
            raise _unusable(f"an index of version {version}, not {VERSION}", path)
        if zlib.crc32(data[: HEADER_BYTES - 4]).to_bytes(4, "little") != data[-4:]:
            raise _unusable("an index with a damaged header", path)
        _magic, _version, videos, directory_at, num_bytes, crc = _HEADER.unpack_from(data)
        if num_bytes != file_bytes or directory_at + 16 * videos != num_bytes:
            raise _unusable(f"an index of {num_bytes} bytes, of which {file_bytes} are there", path)
        return cls(videos, directory_at, num_bytes, crc)


UNFINISHED = (MAGIC + VERSION.to_bytes(4, "little")).ljust(HEADER_BYTES, b"\0")
"""What stands for the header while a file is being written."""


def _unusable(what: str, path: str) -> IndexFileError:
    return IndexFileError(what, remedy="Build it anew with `reelseek index`", path=path)


def hash_of(relative: bytes) -> int:
    """What the directory is sorted by: it need not be unique, as the records hold the paths."""
    return zlib.crc32(relative)


def pack_record(kind: int, payload: bytes) -> bytes:
    """A record as bytes."""
    return RECORD_HEAD.pack(len(payload), zlib.crc32(payload, _CRC_OF_KIND[kind]), kind) + payload


def read_record(data: bytes, position: int, kind: int) -> bytes | None:
    """The payload of the record at a position; None where there is no whole one of this kind."""
    start = position + RECORD_HEAD.size
    if start > len(data) or kind not in _CRC_OF_KIND:
        return None
    length, crc, found = RECORD_HEAD.unpack_from(data, position)
    if found != kind or start + length > len(data):
        return None
    payload = data[start : start + length]
    return payload if zlib.crc32(payload, _CRC_OF_KIND[kind]) == crc else None
