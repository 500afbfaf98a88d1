"""URIs of objects and folders in a bucket: which there are, and what they may say.

Where the store is and how to be let in is said by the environment, never by the URI, which stands in
messages, manifests and names of files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from anabranch.state.bucket import Bucket


@dataclass(frozen=True)
class StoreKind:
    """A kind of object store."""

    name: str
    keys: tuple[str, ...]
    """The variables of the environment that let a user in."""
    others: str
    """Those that say where it is."""


AMAZON = StoreKind(
    "S3", ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "AWS_ENDPOINT_URL and AWS_REGION"
)
GOOGLE = StoreKind("Google Cloud Storage", ("GOOGLE_SERVICE_ACCOUNT",), "GOOGLE_BASE_URL")
AZURE = StoreKind(
    "Azure", ("AZURE_STORAGE_ACCOUNT_KEY",), "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ENDPOINT"
)
KINDS = {"s3": AMAZON, "gs": GOOGLE, "abfs": AZURE, "abfss": AZURE, "az": AZURE}
"""Stores by the beginning of their URIs."""

OPTIONS = re.compile(r"\?\w+=")


def is_object(path: object) -> bool:
    """Whether a path is that of an object, or of a folder, in a bucket.

    >>> is_object("s3://bucket/folder"), is_object("/data/s3://x"), is_object("file:///data")
    (True, False, False)
    """
    scheme, separator, _ = str(path).partition("://")
    return bool(separator) and scheme in KINDS


def local_path(path: str) -> str:
    """The path that a `file://` stands for; other paths as they are.

    >>> local_path("file:///data/a%20b"), local_path("/data/a%20b")
    ('/data/a b', '/data/a%20b')
    """
    parts = urlsplit(path) if path.startswith("file://") else None
    if parts is None or parts.netloc not in ("", "localhost"):
        return path
    return unquote(parts.path)


def split_uri(uri: str) -> tuple[str, str, str]:
    """The scheme, the bucket and the key of a URI; raises ValueError that says what was expected."""
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    key = key.strip("/")
    # A question mark may be part of a pattern
    strange = set(bucket) & set("?#@:") or set(key) & set("#@") or OPTIONS.search(key)
    if not bucket or strange or "//" in key:
        kind = KINDS[scheme]
        raise ValueError(
            f"expected {scheme}://bucket/folder. The server and the keys are taken from {kind.others}, "
            f"{' and '.join(kind.keys)}"
        )
    return scheme, bucket, key


def bucket_of(uri: str) -> tuple[Bucket, str]:
    """The bucket of a URI, and the key in it; raises ValueError where there can be none.

    ImportError comes as a ValueError too, with what to install.
    """
    scheme, name, key = split_uri(uri)
    try:
        # The library is an extra, which paths of this machine do without
        from anabranch.state.bucket import open_bucket
    except ImportError as error:
        raise ValueError(
            f"it needs a package that is not there ({error}): pip install 'anabranch[s3]', on the driver "
            "and on every executor"
        ) from error
    return open_bucket(scheme, name), key
