"""Codec contexts, kept per configuration, process and thread, and dropped after any error.

A context belongs to no file: after a reset it decodes any stream of the same configuration. That
is what makes the first read of a file cost as much as the next one.

A context has no threads of its own. PyAV lends a decoder the packet's Python bytes, and giving
them back takes the interpreter's lock: a decoder's thread that does so while the interpreter
resets the decoder waits for it for ever, and it for the thread.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence
from typing import Any

from reelseek.bitstream._nal import PARAMETER_SETS, parameter_sets_of

TEMPORAL_DELIMITER = b"\x12\x00"
DECODER_NAMES = {"av1": "libdav1d"}
"""Codecs whose decoder isn't named like the codec."""

KEPT_PER_THREAD = 8
KEPT_PER_CONFIGURATION = 4
"""Of one thread: as many files of a kind, such as the cameras of an episode, can be read in turn
from where each stopped."""
PUTS_OUT_AT_ONCE = frozenset({"av1", "vp8", "vp9"})
"""Codecs whose decoding order is display order."""


class CodecState:
    """A codec context, and which units of which file it has been fed since its reset."""

    def __init__(self, codec: str, configuration: bytes) -> None:
        self.key = (codec, configuration)
        """What it decodes: FFmpeg's AV1 decoder keeps the colours of the stream before, where a
        sequence header doesn't say them."""
        self.keeps_place = False
        """True where its holder is likely to go on from where it stopped."""
        self._context = self._opened(codec, configuration)
        self._decode = self._context.decode
        self.holder: object = None
        """The token of whose units it was fed last."""
        self.fed: set[int] = set()
        """The units that it was fed since its reset."""
        self.place = -1
        """The last of them."""
        self.pending: set[int] = set()
        """Those of them whose picture hasn't come out; kept for decoders that hold some back."""
        self.early: list[Any] = []
        """Pictures that came out before they were asked for, in display order."""
        self.damaged: set[int] = set()
        """The units whose picture the decoder had to invent in parts."""
        self.holds_back = codec not in PUTS_OUT_AT_ONCE
        """True where a picture may come out later than its unit goes in."""
        self._after_reset, self._later = heads(codec, configuration)

    def _opened(self, codec: str, configuration: bytes) -> Any:
        import av

        context: Any = av.CodecContext.create(DECODER_NAMES.get(codec, codec), "r")
        if codec != "av1":  # in AV1 the sequence header goes before the first unit
            context.extradata = configuration
        context.thread_count = 1
        # Damage is reported, not concealed: what is concealed depends on where decoding started.
        # strict: H.264 that doesn't say how far it reorders gets the longest delay, for otherwise
        # FFmpeg guesses a short one, and drops the pictures that come too late for it.
        context.options = {"err_detect": "explode", "strict": "1"}
        context.open()
        self._packet = av.Packet
        return context

    def reset(self, holder: object) -> None:
        """Forget everything, for another run of units."""
        self._context.flush_buffers()
        self.holder, self.fed, self.pending, self.place = holder, set(), set(), -1
        self.early, self.damaged = [], set()

    def feed(self, unit: int, data: bytes) -> Sequence[Any]:
        """Decode one unit; the pictures that come out have their units' numbers as pts."""
        packet = self._packet((self._after_reset if self.place < 0 else self._later) + data)
        packet.pts = unit
        self.fed.add(unit)
        self.place = unit
        pictures: Sequence[Any] = self._decode(packet)
        if self.holds_back:
            self.pending.add(unit)
            self.pending.difference_update(picture.pts for picture in pictures)
        return pictures

    def awaits(self, last: int) -> bool:
        """True where a picture of a unit up to this one hasn't come out."""
        return any(unit <= last for unit in self.pending)

    def forget(self, last: int) -> None:
        """Don't await pictures of units up to this one any longer."""
        self.pending = {unit for unit in self.pending if unit > last}

    def drain(self) -> Sequence[Any]:
        """The pictures that the decoder still holds back; before more is fed, it must be reset."""
        pictures: Sequence[Any] = self._decode(None)
        self.pending = set()
        return pictures


def heads(codec: str, configuration: bytes) -> tuple[bytes, bytes]:
    """What goes before the bytes of the first unit after a reset, and before those of others.

    A reset leaves the parameter sets in force that came last, perhaps with another file of the
    same configuration: the configuration's own go before the first unit after it.
    """
    if codec == "av1" and configuration:  # without one it is fed in packets, which have all this
        return TEMPORAL_DELIMITER + configuration, TEMPORAL_DELIMITER
    if codec in PARAMETER_SETS:
        return parameter_sets_of(codec, configuration), b""
    return b"", b""


class _Kept(threading.local):
    """The contexts of one thread, the last used at the end."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew, as a process does that was forked."""
        self.pid = os.getpid()
        self.states: list[CodecState] = []


_kept = _Kept()


def borrow(codec: str, configuration: bytes, holder: object, *, keeps_place: bool) -> CodecState:
    """One of the thread's contexts for this configuration, made where there is none.

    Args:
        codec: The codec's name.
        configuration: What the decoder is told first.
        holder: A token of who will feed it, which keeps nothing alive; gets back the context that
            it fed last, if that is still there.
        keeps_place: True where the holder is likely to go on from where it stops. Then others of
            the thread take another context, as long as there aren't too many.
    """
    states = _own_states()
    if not states or states[-1].holder is not holder:
        state = _chosen(states, (codec, configuration), holder)
        if not states or states[-1] is not state:
            drop(state)
            states.append(state)
            del states[:-KEPT_PER_THREAD]
    states[-1].keeps_place = keeps_place
    return states[-1]


def _own_states() -> list[CodecState]:
    """The contexts of this thread, in this process."""
    if _kept.pid != os.getpid():
        _kept.forget()
    return _kept.states


def _chosen(states: Sequence[CodecState], key: tuple[str, bytes], holder: object) -> CodecState:
    """The context to lend: the holder's, else one that nobody goes on with, else another."""
    same = [state for state in states if state.key == key]
    for state in same:
        if state.holder is holder:
            return state
    for state in reversed(same):
        if state.holder is None or not state.keeps_place:
            return state
    return CodecState(*key) if len(same) < KEPT_PER_CONFIGURATION else same[0]


def release(holder: object) -> None:
    """Forget what this thread's contexts keep for a holder that reads no more."""
    for state in _own_states():
        if state.holder is holder:
            state.holder, state.early, state.keeps_place = None, [], False


def drop(state: CodecState) -> None:
    """Forget a context that failed."""
    states = _own_states()
    if state in states:
        states.remove(state)


@functools.lru_cache(64)
def has_decoder(codec: str) -> bool:
    """True where PyAV can decode a codec; what it carries depends on who built it."""
    import av

    return DECODER_NAMES.get(codec, codec) in av.codecs_available


def is_ffmpeg_error(exc: BaseException) -> bool:
    """True for what PyAV raises when FFmpeg fails."""
    import av

    return isinstance(exc, av.error.FFmpegError)
