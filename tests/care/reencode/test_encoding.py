"""What may be asked of an encoder, and how it is told."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from reelseek.care.reencode import DEFAULT_ENCODINGS, Encoding
from reelseek.cli._main import app


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"codec": "vp9"}, "choose one of av1, h264, hevc"),
        ({"gop": 0}, "give 1 to 10000 frames"),
        ({"codec": "h264", "crf": 52}, "h264 takes 0 to 51"),
        ({"codec": "av1", "preset": "medium"}, "av1 takes 0, 1, 2"),
        ({"codec": "hevc", "preset": "8"}, "hevc takes placebo, veryslow"),
        ({"codec": "av1", "pixel_format": "yuv444p"}, "av1 takes yuv420p"),
        ({"size": (8, 64)}, "give 16 to 8192 pixels"),
        ({"size": (65, 64)}, "takes even sizes only"),
    ],
)
def test_what_an_encoder_does_not_take_is_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Encoding(**values)


def test_size_may_be_odd_where_colours_are_whole() -> None:
    assert Encoding("h264", size=(65, 33), pixel_format="yuv444p").size == (65, 33)


@pytest.mark.parametrize("encoding", DEFAULT_ENCODINGS, ids=str)
def test_one_thread_and_no_frames_out_of_order(encoding: Encoding) -> None:
    options = encoding.encoder_options()
    assert ("g" in options) == (encoding.gop is not None)
    assert {"av1": "lp=1", "h264": "0", "hevc": "bframes=0"}[encoding.codec] in str(options)


FULL = Encoding("hevc", None, 20, "slow", "yuv444p", (64, 48), True)


@pytest.mark.parametrize("encoding", [*DEFAULT_ENCODINGS, FULL], ids=str)
def test_document_gives_the_same_encoding(encoding: Encoding) -> None:
    assert Encoding.from_document(encoding.document()) == encoding


def test_command_options_are_those_of_the_command() -> None:
    import typer.main

    command: Any = typer.main.get_command(app)
    arguments = ["in", "out", *shlex.split(FULL.command_options())]
    given = command.commands["reencode"].make_context("reencode", arguments).params
    assert (given["codec"], given["gop"], given["crf"]) == ("hevc", 0, 20)
    assert (given["preset"], given["pix_fmt"], given["size"]) == ("slow", "yuv444p", "64x48")
    assert given["b_frames"]
