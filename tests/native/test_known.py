"""The table of known-good versions: its form, and the choices made by it."""

from __future__ import annotations

import importlib.resources
import json

import jsonschema
import pytest

from reelseek.native import _known as known

VERSION = {"type": "string", "pattern": r"^\d+(\.\d+)*$"}
ENDS = {
    "type": "array",
    "prefixItems": [VERSION, {"type": "string", "pattern": r"^(\d+(\.\d+)*)?$"}],
    "minItems": 2,
    "maxItems": 2,
}
ROW = {
    "type": "object",
    "additionalProperties": False,
    "required": ["newest", "torch", "python", "ffmpeg", "cuda"],
    "properties": {
        "newest": VERSION,
        "torch": ENDS,
        "python": ENDS,
        "ffmpeg": {"type": "array", "items": {"type": "integer", "minimum": 4}, "minItems": 1},
        "cuda": {"enum": ["", "12", "13"]},
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["source", "avutil_major_of_ffmpeg_0", "torchcodec", "nvidia_packages"],
    "properties": {
        "source": {"type": "string"},
        "avutil_major_of_ffmpeg_0": {"const": 52},
        "torchcodec": {
            "type": "object",
            "propertyNames": {"pattern": r"^\d+\.\d+$"},
            "additionalProperties": ROW,
        },
        "pyav_with_ffmpeg": {"type": "object", "additionalProperties": {"type": "string"}},
        "nvidia_packages": {
            "type": "object",
            "propertyNames": {"pattern": r"^lib\w+\.so\.\d+$"},
            "additionalProperties": {"type": "string", "pattern": r"^nvidia-[a-z0-9-]+$"},
        },
    },
}


def test_table_has_its_form() -> None:
    path = importlib.resources.files("reelseek.native") / "known_versions.json"
    jsonschema.validate(json.loads(path.read_text()), SCHEMA)
    assert [row.version for row in known.known_torchcodecs()][:2] == ["0.17", "0.16"]


@pytest.mark.parametrize(
    ("torch", "cuda", "wanted"),
    [
        ("2.13.0+cpu", "", "0.13.0"),  # newer ones need CUDA's libraries
        ("2.13.0+cu130", "13.0", "0.17.0"),
        ("2.11.0+cu128", "12.8", "0.13.0"),  # PyPI's newer wheels are for CUDA 13
        ("2.9.1", "", "0.9.1"),
        ("2.7.1+cu126", "12.6", "0.5"),
        ("", "", "0.13.0"),
    ],
)
def test_newest_torchcodec_that_fits_a_torch_is_chosen(torch: str, cuda: str, wanted: str) -> None:
    row = known.best_torchcodec(torch=torch, python="3.11.7", cuda=cuda)
    assert row is not None and row.newest == wanted


def test_nothing_is_chosen_for_a_torch_older_than_all() -> None:
    assert known.best_torchcodec(torch="1.13.1", python="3.10.1", cuda="") is None


def test_installed_release_is_found_by_its_first_two_numbers() -> None:
    row = known.known_torchcodec("0.11.1+cu130")
    assert row is not None
    assert (row.cuda, row.fits(torch="2.11.0", python="3.12"), row.fits(torch="2.10", python="")) \
        == ("13", True, False)  # fmt: skip
    assert known.known_torchcodec("99.1") is None


def test_library_of_cuda_is_found_in_its_package() -> None:
    assert known.package_of_library("libnppicc.so.12") == "nvidia-npp-cu12"
    assert known.package_of_library("libnvrtc.so.13") == "nvidia-cuda-nvrtc"
    assert known.package_of_library("libz.so.1") == ""


def test_pyav_is_chosen_by_the_newest_ffmpeg_that_both_know() -> None:
    assert known.pyav_requirement((4, 5, 6, 7)) == "av>=14,<16"
    assert known.pyav_requirement((4, 5, 6, 7, 8)) == "av>=16,<19"
    assert known.pyav_requirement((4,)) == ""


def test_ffmpeg_major_and_libavutil_are_one_thing() -> None:
    assert known.avutil_of_ffmpeg(7) == "libavutil.so.59"
    assert known.ffmpeg_major_of_avutil(59) == 7
