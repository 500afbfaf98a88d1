"""Windows to group by as they are written: their sizes are read once the unit of the times is known."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.errors import LanguageError
from anabranch.language.checked import checked
from anabranch.language.order import Ordered
from anabranch.language.window import CountWindow, Hop, SessionGap, Tumble, Window, duration
from anabranch.language.windowed import Covering


@dataclass(frozen=True)
class WindowKey:
    """A window to group by."""

    kind: str
    sizes: tuple[int | str, ...]
    column: str | None = None
    """The column that tells the time, if it is not the ordered attribute itself."""
    offset: int | str | None = None
    """By how much windows begin later than counted from zero, if they do."""

    def resolve(self, ordered: Ordered | None, days: bool = False) -> Window:
        """The window over times of this kind; with `days`, over dates."""
        if ordered is None:
            raise LanguageError(f"{self.kind}(): the input has no ordered attribute any more.")
        if self.kind == "rows":
            numbers = [size for size in self.sizes if isinstance(size, int)]
        else:
            numbers = [
                duration(size, ordered.timestamps, f"the size in {self.kind}()", days)
                for size in self.sizes
            ]
        if len(numbers) != len(self.sizes) or any(number < 1 for number in numbers):
            raise LanguageError(f"{self.kind}{self.sizes}: sizes must be whole numbers above 0.")
        match self.kind:
            case "tumble":
                return Tumble(numbers[0])
            case "hop":
                return Hop(numbers[0], numbers[1])
            case "session":
                return SessionGap(numbers[0])
        return CountWindow(numbers[0], numbers[1])


def covering_of(key: WindowKey, ordered: Ordered | None, days: bool) -> Covering:
    """The windows of a key with an offset, for rows to be put in."""
    window = key.resolve(ordered, days)
    assert isinstance(window, (Tumble, Hop))
    assert ordered is not None
    assert key.offset is not None
    offset, sign = key.offset, 1
    if isinstance(offset, str) and offset.startswith("-"):
        offset, sign = offset[1:], -1
    shift = sign * duration(offset, ordered.timestamps, f"the offset in {key.kind}()", days)
    step = window.slide if isinstance(window, Hop) else window.size
    return Covering(key.kind, window.size, step, shift)


@checked
def tumble(size: int | str, offset: int | str | None = None) -> WindowKey:
    """Windows side by side, given as window_start and window_end: tumble(60), tumble("1 minute").

    With an offset they begin so much later: tumble("1 day", "6 hours").
    """
    return WindowKey("tumble", (size,), offset=offset)


@checked
def hop(size: int | str, slide: int | str, offset: int | str | None = None) -> WindowKey:
    """Windows of `size` that start every `slide`: hop(60, 10)."""
    return WindowKey("hop", (size, slide), offset=offset)


@checked
def session_window(gap: int | str) -> WindowKey:
    """Windows that end when the group has been silent for `gap`: session_window("5 minutes")."""
    return WindowKey("session", (gap,))


@checked
def count_window(size: int, advance: int | None = None) -> WindowKey:
    """Windows of `size` rows of the group in time order, one every `advance` rows (default: size)."""
    return WindowKey("rows", (size, size if advance is None else advance))
