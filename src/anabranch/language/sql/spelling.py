"""The dialects of texts: where the SQL of other systems means something else by the same words.

What only one of them has is understood in all: names of functions are aliases (`names.py`), backticks quote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from anabranch.errors import LanguageError, suggest


@dataclass(frozen=True)
class Spelling:
    """What a dialect means by words and signs that others read otherwise."""

    name: str
    floors: bool = False
    """Whether `/` of integers and `%` round down, so that windows below zero are as long as others."""
    fractions: bool = False
    """Whether `/` of two integers is a fraction."""
    first: int = 1
    """The number of a list's first element in brackets."""
    double_quotes_text: bool = False
    """Whether "…" is a text, not a name."""
    slide_first: bool = False
    """Whether HOP in GROUP BY has its slide before its size."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """Functions whose meaning differs, with ours of that meaning."""
    nulls: Literal["last", "small", "large"] = "last"
    """Where ORDER BY puts NULL: at the end, or where a value below or above all others would be."""
    concat_skips_null: bool = False
    """Whether CONCAT passes over NULL, where it is NULL in others."""
    least_date_part: int = 0
    """The number of Sunday in dayofweek()."""
    escapes: bool = False
    """Whether a backslash in a text stands for the sign after it, as in '\\\\d' and '\\n'."""
    like_escapes: bool = False
    """Whether a backslash in a LIKE pattern takes the meaning of the sign after it away."""
    powers: bool = False
    """Whether `^` is a power, not an exclusive or."""
    rounds_away: bool = False
    """Whether ROUND of a float takes a half away from zero, not to the even neighbour."""
    rounds_casts: bool = False
    """Whether a CAST of a float to an integer rounds, not cuts off."""
    cuts_decimals: bool = False
    """Whether a CAST of a decimal to an integer cuts off, not rounds."""
    whole_seconds: bool = True
    """Whether EXTRACT leaves the fraction of a second out."""


OURS = Spelling("anabranch", floors=True)
SPELLINGS = {
    "anabranch": OURS,
    "duckdb": Spelling(
        "duckdb", fractions=True, functions={"log": "log10"}, concat_skips_null=True, powers=True,
        rounds_away=True, rounds_casts=True,
    ),
    "spark": Spelling(
        "spark", fractions=True, first=0, double_quotes_text=True, functions={"log": "ln"},
        nulls="small", least_date_part=1, escapes=True, like_escapes=True, rounds_away=True,
        cuts_decimals=True, whole_seconds=False,
    ),
    "flink": Spelling(
        "flink", slide_first=True, functions={"log": "ln"}, nulls="small", least_date_part=1,
        rounds_away=True, cuts_decimals=True,
    ),
    "postgres": Spelling(
        "postgres", functions={"log": "log10"}, nulls="large", concat_skips_null=True,
        like_escapes=True, powers=True, rounds_casts=True, whole_seconds=False,
    ),
    "risingwave": Spelling(
        "risingwave", slide_first=True, functions={"log": "log10"}, nulls="large",
        concat_skips_null=True, like_escapes=True, powers=True, rounds_casts=True,
        whole_seconds=False,
    ),
    "arroyo": Spelling(
        "arroyo", slide_first=True, functions={"log": "log10"}, nulls="large", concat_skips_null=True,
        like_escapes=True,
    ),
}  # fmt: skip


def spelling_named(name: str) -> Spelling:
    """The dialect of that name."""
    if name not in SPELLINGS:
        raise LanguageError(f"There is no dialect '{name}'.{suggest(name, SPELLINGS)}")
    return SPELLINGS[name]
