"""Places of a run that must not lie within each other: results would be read as input, or cleared away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

from anabranch.errors import SettingsError
from anabranch.sinks.base import Sink
from anabranch.sinks.dead_letter import KINDS
from anabranch.sinks.files import FileSink
from anabranch.sinks.reach import reaches, real_path
from anabranch.sinks.staging import SUFFIX
from anabranch.sources.base import Source
from anabranch.sources.files import FileSource
from anabranch.sources.paths import HIDDEN
from anabranch.state.place import Place
from anabranch.state.uris import is_object

Shapes = list[tuple[str, ...]]
"""What the names below a folder will be, as patterns."""
EPOCH = f"epoch={'[0-9]' * 12}"
OF_A_CHECKPOINT: Shapes = [
    ("lock",), ("manifests", "*.json"), ("sources", "*.json"), ("state", "*", "*.arrow"),
    ("results", "*.json"), ("results", "*", "*.arrow"), ("landing", "*", "*", "*"),
]  # fmt: skip


def refuse_overlaps(
    checkpoint: Place, sources: Mapping[str, Source], sinks: Mapping[str, Sink],
    dead_letter: str | None,
) -> None:  # fmt: skip
    """Raises SettingsError, however the folders are spelt."""
    written: dict[str, tuple[Path, Shapes]] = {
        f"The sink of '{query}'": (sink.folder, [(EPOCH, f"part-*.{SUFFIX[sink.format]}")])
        for query, sink in sinks.items()
        if isinstance(sink, FileSink)
    }
    for query, sink in sinks.items():
        if is_object(getattr(sink, "folder", "")):
            bucketed: Any = sink
            shape = (EPOCH, f"part-*.{SUFFIX[bucketed.format]}")
            written[f"The sink of '{query}'"] = Path(bucketed.folder), [shape]
            continue
        table = getattr(sink, "folder", None)
        if table is not None and not isinstance(sink, FileSink):
            below = len(getattr(sink, "partition_by", ()))
            names = (*["*=*"] * below, "*.parquet")
            written[f"The sink of '{query}'"] = table, [names, ("_delta_log", "*.json")]
    if dead_letter is not None:
        letters: Shapes = [(kind, stream, EPOCH, "*") for kind in KINDS for stream in sources]
        written["The dead-letter folder"] = (Path(dead_letter), letters)
    _refuse_nested({what: folder for what, (folder, _) in written.items()})
    kept = Path(str(checkpoint)) if is_object(checkpoint) else checkpoint.folder
    if kept is not None:
        for what, (folder, _) in written.items():
            if real_path(folder).is_relative_to(real_path(kept)):
                raise SettingsError(
                    f"{what} is '{folder}', inside the checkpoint '{checkpoint}', which is cleared by its "
                    "own rules: choose a folder outside."
                )
        written["The checkpoint"] = (kept, OF_A_CHECKPOINT)
    for what, (folder, shapes) in written.items():
        _refuse_input(what, folder, shapes, sources)


def _refuse_nested(folders: Mapping[str, Path]) -> None:
    """One reader of the outer folder would take what is in the inner one for its own."""
    for (what, folder), (other, outer) in permutations(folders.items(), 2):
        inner, above = real_path(folder), real_path(outer)
        if inner == above:
            raise SettingsError(
                f"{other} and {what[0].lower()}{what[1:]} have the same folder '{folder}': give each its own."
            )
        if inner.is_relative_to(above):
            # What begins with '_' or '.' is passed over by whoever reads a folder
            if any(name.startswith(HIDDEN) for name in inner.relative_to(above).parts):
                continue
            raise SettingsError(
                f"{what} is '{folder}', inside '{outer}', which is {other[0].lower()}{other[1:]}: whoever "
                "reads that would read both. Choose a folder outside, or one that begins with '_'."
            )


def _refuse_input(
    what: str, folder: Path, shapes: Iterable[tuple[str, ...]], sources: Mapping[str, Source]
) -> None:
    for stream, source in sources.items():
        if isinstance(source, FileSource) and any(
            reaches(source.path, folder, names) for names in shapes
        ):
            raise SettingsError(
                f"{what} is '{folder}', which stream '{stream}' would read as input (its path is "
                f"'{source.path}'): choose a folder outside, or one that begins with '_'."
            )
