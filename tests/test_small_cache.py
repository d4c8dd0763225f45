"""What is kept is bounded in bytes, not in entries alone."""

from __future__ import annotations

from reelseek._small_cache import MOST_BYTES, kept_where_small


def test_large_arguments_are_computed_each_time_and_not_kept() -> None:
    calls = []

    @kept_where_small(4)
    def length(name: str, parts: tuple[bytes, ...]) -> int:
        calls.append(name)
        return sum(map(len, parts))

    large = (bytes(MOST_BYTES), b"a")
    for _ in range(2):
        assert length("small", (b"ab", b"c")) == 3
        assert length("large", large) == MOST_BYTES + 1
    assert calls == ["small", "large", "large"]
