"""Functions of texts beyond the simplest: regular expressions, padding, places, codes.

Regular expressions are Polars' (Rust's): no look-around, no references back within a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import polars as pl

_REFERENCE = re.compile(r"\\(\d)|\$(\d)|\$")


def _replacement(written: str) -> str:
    """A replacement as Polars reads it: `\\1` and `$1` are groups, other `$` are themselves."""
    return _REFERENCE.sub(
        lambda found: f"${{{found[1] or found[2]}}}" if found[1] or found[2] else "$$", written
    )


def _regexp_replace(text: pl.Expr, pattern: str, by: str, flags: str = "") -> pl.Expr:
    pattern = f"(?i){pattern}" if "i" in flags else pattern
    if "g" in flags:
        return text.str.replace_all(pattern, _replacement(by))
    return text.str.replace(pattern, _replacement(by))


def _regexp_extract(text: pl.Expr, pattern: str, group: int = 0) -> pl.Expr:
    return pl.when(text.is_not_null()).then(text.str.extract(pattern, group).fill_null(""))


def _position(text: pl.Expr, part: pl.Expr) -> pl.Expr:
    """The number of the character at which a part begins, from 1; 0 if it is not there."""
    # Polars finds bytes; what is before the part is counted in characters
    bytes_before = text.str.find(part, literal=True).cast(pl.Int64)
    before = text.cast(pl.Binary).bin.slice(0, bytes_before).cast(pl.String).str.len_chars()
    known = text.is_not_null() & part.is_not_null()
    return pl.when(known).then(
        pl.when(bytes_before.is_null()).then(0).otherwise(before.cast(pl.Int64) + 1)
    )


def _padded(text: pl.Expr, length: int, fill: str, left: bool) -> pl.Expr:
    filling = (fill * length)[:length]
    missing = length - text.str.len_chars().cast(pl.Int64)
    pad = pl.lit(filling).str.slice(0, missing.clip(0))
    whole = pl.concat_str(pad, text) if left else pl.concat_str(text, pad)
    return pl.when(missing <= 0).then(text.str.slice(0, length)).otherwise(whole)


def _translate(text: pl.Expr, old: str, new: str) -> pl.Expr:
    """Each character of `old` by the one in its place in `new`, or by nothing."""
    pairs = {one: new[at : at + 1] for at, one in reversed(list(enumerate(old)))}
    return text.str.replace_many(list(pairs), list(pairs.values())) if pairs else text


def _capitals(text: pl.Expr) -> pl.Expr:
    """Each word between spaces with a capital first."""
    return text.str.to_lowercase().str.split(" ").list.eval(_capital()).list.join(" ")


_WORDS = r"[\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]+"


def _titled(text: pl.Expr) -> pl.Expr:
    """Each word of letters and digits with a capital first; a digit ends none, as it does for Polars."""
    return text.str.to_lowercase().str.extract_all(_WORDS).list.eval(_capital()).list.join("")


def _capital() -> pl.Expr:
    word = pl.element()
    return pl.concat_str(word.str.slice(0, 1).str.to_uppercase(), word.str.slice(1))


TEXTS: Mapping[str, Callable[..., pl.Expr]] = {
    "regexp_matches": lambda a, pattern: a.str.contains(pattern),
    "regexp_full_match": lambda a, pattern: a.str.contains(f"^(?:{pattern})$"),
    "regexp_replace": _regexp_replace,
    "regexp_extract": _regexp_extract,
    "regexp_extract_all": lambda a, pattern: a.str.extract_all(pattern),
    "regexp_count": lambda a, pattern: a.str.count_matches(pattern).cast(pl.Int64),
    "position_of": _position,
    "lpad": lambda a, length, fill=" ": _padded(a, length, fill, True),
    "rpad": lambda a, length, fill=" ": _padded(a, length, fill, False),
    "reverse": lambda a: a.str.reverse(),
    "repeat": lambda a, count: pl.when(a.is_not_null()).then(
        a.repeat_by(count.clip(0).cast(pl.UInt32)).list.join("")
    ),
    "initcap": _titled,
    "initcap_words": _capitals,
    "translate": _translate,
    "concat_ws": lambda separator, *parts: pl.concat_str(
        *parts, separator=separator, ignore_nulls=True
    ),
    "octet_length": lambda a: a.str.len_bytes().cast(pl.Int64),
    "hex": lambda a: a.str.encode("hex").str.to_uppercase(),
    "base64": lambda a: a.str.encode("base64"),
    "unbase64": lambda a: a.str.decode("base64", strict=False).cast(pl.String),
    "unhex": lambda a: a.str.decode("hex", strict=False).cast(pl.String),
    "split": lambda a, separator: a.str.split(separator),
    "json_text": lambda a, path: a.str.json_path_match(path),
}
TEXT_CONSTANTS: Mapping[str, tuple[int, ...]] = {
    "regexp_matches": (1,), "regexp_full_match": (1,), "regexp_replace": (1, 2, 3), "regexp_extract": (1, 2),
    "regexp_extract_all": (1,), "regexp_count": (1,), "lpad": (1, 2), "rpad": (1, 2), "translate": (1, 2),
    "concat_ws": (0,), "split": (1,), "json_text": (1,),
}  # fmt: skip


def text_misuse(function: str, place: int, value: object) -> str | None:
    """What is expected of a constant argument of a function of texts, if this value is not it."""
    if function in ("lpad", "rpad") and place == 1:
        return None if type(value) is int and value >= 0 else "a number of characters"
    if function == "regexp_extract" and place == 2:
        return None if type(value) is int and value >= 0 else "the number of a group"
    if function == "regexp_replace" and place == 3:
        fits = isinstance(value, str) and set(value) <= set("gi")
        return None if fits else "flags: 'g' for all places, 'i' for any case"
    if not isinstance(value, str):
        return "a text"
    if function.startswith("regexp") and place == 1:
        return _unreadable(value)
    if function in ("lpad", "rpad", "split") and not value:
        return "a text that is not empty"
    return None


def _unreadable(pattern: str) -> str | None:
    try:
        pl.select(pl.lit("").str.contains(pattern))
    except pl.exceptions.PolarsError:
        return "a regular expression without look-around and references back, such as '^a[0-9]+'"
    return None
