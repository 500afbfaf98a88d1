"""Places of a run that must not lie within each other: results would be read as input, or cleared away."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from anabranch.errors import SettingsError
from anabranch.sinks.base import Sink
from anabranch.sinks.files import FileSink
from anabranch.sources.base import Source
from anabranch.sources.files import FileSource
from anabranch.sources.listing import would_read


def refuse_overlaps(
    checkpoint: Path, sources: Mapping[str, Source], sinks: Mapping[str, Sink],
    dead_letter: str | None,
) -> None:  # fmt: skip
    """Raises SettingsError, however the folders are spelt."""
    written = {
        f"The sink of '{query}'": sink.folder
        for query, sink in sinks.items()
        if isinstance(sink, FileSink)
    }
    if dead_letter is not None:
        for what, folder in written.items():
            if _real(folder) == _real(dead_letter):
                raise SettingsError(
                    f"{what} and the dead letters have the same folder '{folder}': give each its own."
                )
        written["The dead-letter folder"] = Path(dead_letter)
    for what, folder in written.items():
        if _real(folder).is_relative_to(_real(checkpoint)):
            raise SettingsError(
                f"{what} is '{folder}', inside the checkpoint '{checkpoint}', which is cleared by its own "
                "rules: choose a folder outside."
            )
    for what, folder in {**written, "The checkpoint": checkpoint}.items():
        for stream, source in sources.items():
            # A file in a folder, as results and state are
            if isinstance(source, FileSource) and would_read(
                source.path, str(folder / "of" / "it")
            ):
                raise SettingsError(
                    f"{what} is '{folder}', which stream '{stream}' would read as input (its path is "
                    f"'{source.path}'): choose a folder outside, or one that begins with '_'."
                )


def _real(path: Path | str) -> Path:
    return Path(os.path.realpath(path))
