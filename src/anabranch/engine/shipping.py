"""This package, and the libraries it needs, as files that Spark can take to executors.

The package itself is small: a zip for `--py-files`, which a driver sends by itself where executors lack it or
have another one. Libraries are compiled for one Python and one kind of machine, and cannot be loaded from a
zip: they are an archive for `--archives`, unpacked where a task begins, and made only when asked for.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import platform
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib import metadata
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path

from anabranch.errors import SettingsError

LIBRARIES = "libraries"
"""What an archive is called where it is unpacked: `--archives FILE#libraries`."""
NOT_SHIPPED = ("jars", "bin", "sbin", "data", "examples", "licenses", "R")
"""What of PySpark's folder is Spark itself, which a cluster has."""
REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:\[([^\]]*)\])?")
OPTION = re.compile(r"extra == [\'\"]([\w-]+)[\'\"]")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all that is packed, so that equal packages make equal files."""


@functools.cache
def package_digest() -> str:
    """What tells one edition of this package from another, however it came here."""
    root = Path(__file__).parents[1]
    if not root.is_dir():
        # Loaded from a zip, whose name says it: see `write_package`
        found = re.search(r"anabranch-([0-9a-f]{16})\.zip", str(root))
        return found.group(1) if found else str(root)
    digest = hashlib.sha256()
    for path in _modules(root):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _modules(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.py") if "__pycache__" not in path.parts)


def write_package(folder: Path) -> Path:
    """Puts this package into a zip in the folder, for `--py-files`."""
    root = Path(__file__).parents[1]
    target = folder / f"anabranch-{package_digest()}.zip"
    if not root.is_dir():
        raise SettingsError(f"Anabranch is loaded from '{root}': give that file to --py-files.")
    with zipfile.ZipFile(target, "w") as packed:
        for path in _modules(root):
            name = str(path.relative_to(root.parent))
            for file, content in ((name, path.read_bytes()), (f"{name}c", _compiled(path, name))):
                packed.writestr(zipfile.ZipInfo(file, EPOCH), content, zipfile.ZIP_DEFLATED, 1)
    return target


def _compiled(path: Path, name: str) -> bytes:
    """A module as Python keeps it: of a zip it keeps nothing, every worker would compile all of it."""
    code = SourceFileLoader(name, str(path)).get_code(name)
    never_checked = (1).to_bytes(4, "little")
    return MAGIC_NUMBER + never_checked + source_hash(path.read_bytes()) + marshal.dumps(code)


def write_libraries(target: Path) -> Path:
    """Puts this package and all that it needs of other packages into an archive, for `--archives`."""
    if not target.name.endswith((".tar.gz", ".tgz")):
        raise SettingsError(f"The archive '{target}' would not be unpacked: call it NAME.tar.gz.")
    root = Path(__file__).parents[1]
    try:
        with tarfile.open(target, "w:gz", compresslevel=1) as packed:
            for path in _modules(root):
                packed.add(path, str(path.relative_to(root.parent)))
            for path, name in _libraries():
                packed.add(path, name, recursive=False)
    except OSError as error:
        target.unlink(missing_ok=True)
        raise SettingsError(f"Cannot write '{target}': {error.strerror or error}.") from error
    return target


def _libraries() -> Iterator[tuple[Path, str]]:
    """The installed files of all distributions that this one needs, and where they go in the archive."""
    for distribution in needed():
        for file in distribution.files or ():
            # Programs are beside the folder of libraries, and compiled texts are made again
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            if file.parts[0] == "pyspark" and len(file.parts) > 1 and file.parts[1] in NOT_SHIPPED:
                continue
            path = Path(str(distribution.locate_file(file)))
            if path.is_file():
                yield path, str(file)


def needed() -> list[metadata.Distribution]:
    """The installed distributions that this one needs; those of its options too, where they are installed."""
    found: dict[str, metadata.Distribution] = {}
    waiting: list[tuple[str, frozenset[str]]] = [("anabranch", frozenset({"all"}))]
    while waiting:
        name, options = waiting.pop()
        distribution = _installed(name)
        if distribution is None:
            continue
        for requirement in distribution.requires or ():
            parsed = REQUIREMENT.match(requirement)
            option = OPTION.search(requirement)
            if parsed is None or (option and option.group(1) not in options):
                continue
            one = re.sub(r"[-_.]+", "-", parsed.group(1).lower())
            # What is asked for on other systems only is not here
            if one not in found and (there := _installed(one)) is not None:
                found[one] = there
                waiting.append((one, frozenset(re.findall(r"[\w-]+", parsed.group(2) or ""))))
    return [found[one] for one in sorted(found)]


def _installed(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def machine() -> str:
    """What libraries are compiled for, in words."""
    return f"Python {'.'.join(map(str, sys.version_info[:2]))} on {platform.system()} {platform.machine()}"
