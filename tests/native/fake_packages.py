"""The Python side of the rebuilt chain: packages that load their libraries as the real ones do."""

FAKE_TORCH = '''\
"""Stands for torch: maps the same libraries in the same order."""
import ctypes, importlib.machinery, pathlib
from torch.version import __version__

_folder = pathlib.Path(__file__).parent
ctypes.CDLL(str(_folder / ("_C" + importlib.machinery.EXTENSION_SUFFIXES[0])), ctypes.RTLD_GLOBAL)


class ops:
    @staticmethod
    def load_library(path):
        try:
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        except Exception as exc:
            raise OSError(f"Could not load this library: {path}") from exc
'''

FAKE_TORCHCODEC = '''\
"""Stands for torchcodec: loads its libraries as the real one does, and fails as it does."""
import pathlib, traceback
import torch

_folder = pathlib.Path(__file__).parent


def _load():
    exceptions = []
    for major in (7, 6, 5, 4):
        try:
            torch.ops.load_library(str(_folder / f"libtorchcodec_core{major}.so"))
            return major
        except Exception:
            exceptions.append((major, traceback.format_exc()))
    raise RuntimeError(
        "Could not load libtorchcodec. Likely causes:\\n"
        "The following exceptions were raised as we tried to load libtorchcodec:\\n"
        "[start of libtorchcodec loading traceback]\\n"
        + "\\n".join(f"FFmpeg version {v}:\\n{tb}" for v, tb in exceptions)
        + "[end of libtorchcodec loading traceback]."
    )


ffmpeg_major_version = _load()
'''

FAKE_DECODERS = '''\
class VideoDecoder:
    """Decodes nothing: every frame is an empty picture of the right shape."""

    def __init__(self, source, **options):
        self.source = source

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return Tensor()

    def get_frame_at(self, index):
        return type("Frame", (), {"data": Tensor()})()


class Tensor:
    shape = (3, 64, 64)
'''
