"""Reading a specification file of either kind, told apart by its ending."""

from __future__ import annotations

from pathlib import Path

from anabranch.errors import SettingsError
from anabranch.spec.spec import Spec
from anabranch.spec.sql_file import read_sql
from anabranch.spec.yaml_file import read_yaml

READERS = {".sql": read_sql, ".yml": read_yaml, ".yaml": read_yaml}


def read_spec(path: str | Path) -> Spec:
    """The specification in a SQL or a YAML file."""
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise SettingsError(
            f"'{path}' is not a specification file: expected a name that ends in "
            f"{', '.join(READERS)}."
        )
    return reader(path)
