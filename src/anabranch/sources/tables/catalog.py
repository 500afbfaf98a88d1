"""Where an Iceberg table is: its catalog, and the folder of this machine, if it is in one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


def load(name: str, uri: str | None, warehouse: str | None, properties: Mapping[str, str]) -> Any:
    """A catalog by its name in the configuration of pyiceberg, or a SQL catalog by its address."""
    import pyiceberg.catalog

    given = {"uri": uri, "warehouse": warehouse}
    kind = {"type": "sql"} if uri is not None else {}
    told = {key: value for key, value in given.items() if value is not None}
    return pyiceberg.catalog.load_catalog(name, **{**kind, **told, **properties})


def local_folder(location: str) -> Path | None:
    """The folder of this machine that a location is; None if it is elsewhere.

    What looks like an escape is part of the name, as it is to pyiceberg: folders of values have some.

    >>> local_folder("file:///data/t"), local_folder("s3://bucket/t")
    (PosixPath('/data/t'), None)
    """
    if "://" not in location and location.startswith("/"):
        return Path(location)
    parts = urlsplit(location)
    return Path(parts.path) if parts.scheme == "file" and not parts.netloc else None
