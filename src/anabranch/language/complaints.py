"""What Polars complains of, in the words of those who write queries."""

from __future__ import annotations

import re

_NAMES = {
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "i128": "a number of 128 bits",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64", "f32": "float32", "f64": "float64",
    "str": "string", "bool": "boolean", "null": "NULL", "Null": "NULL", "Duration": "length of time",
    "duration[μs]": "length of time", "datetime[μs]": "timestamp", "datetime[ms]": "timestamp",
    **{
        name: name.lower()
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32",
                     "Float64", "String", "Boolean", "Binary", "Date", "Time", "List", "Struct")
    },
}  # fmt: skip
_KIND = re.compile("|".join(rf"(?<![\w\[]){re.escape(name)}(?!\w)" for name in _NAMES))
_NESTED = re.compile(r"(list|array)\[([^\[\]]*)\]")
_TIMESTAMP = re.compile(r"(?:Datetime\((?:time_unit=)?|datetime\[)[^)\]]*[)\]]")
_LENGTH = re.compile(r"(?:Duration\([^)]*\)|duration\[[^\]]*\])")
_CLAUSES = (
    (re.compile(r"conversion from (.+?) to (.+?) failed in column '[^']*' for (\d+) out of (\d+) values: "),
     r"conversion from \1 to \2 failed for \3 of \4 values: "),
    (re.compile(r"invalid series dtype: expected `?([^`,]+)`?, got `?([^`]+?)`? for series with name .*"),
     r"expected \1, got \2"),
    (re.compile(r".* operation not supported for dtype `?([^`]+?)`?(?: \(expected: ([^)]*)\))?$"),
     r"\1 is not what it takes"),
    (re.compile(r"'list\.contains' cannot check for (.+) values in (.+) data\.?"),
     r"\1 cannot be among the elements of \2"),
)  # fmt: skip


def in_words(error: object) -> str:
    """The first line of a complaint, with types as queries name them.

    >>> in_words("conversion from `f64` to `datetime[μs]` failed in column 'a' for 1 out of 3 values: [inf]")
    'conversion from float64 to timestamp failed for 1 of 3 values: [inf]'
    """
    # The lines after the first are about expressions of Polars' own
    told = (str(error).splitlines() or [""])[0]
    told, _, values = told.partition("values: ") if "values: " in told else (told, "", "")
    told = _LENGTH.sub("length of time", _TIMESTAMP.sub("timestamp", told))
    told = re.sub(r"decimal\[(\d+),(\d+)\]", r"decimal(\1, \2)", told)
    told = re.sub(r"Decimal\(precision=(\d+), scale=(\d+)\)", r"decimal(\1, \2)", told)
    while (nested := _NESTED.sub(r"list(\2)", told)) != told:
        told = nested
    told = _KIND.sub(lambda found: _NAMES[found[0]], told).replace("`", "")
    told = f"{told}values: " if values else told
    for clause, words in _CLAUSES:
        told = clause.sub(words, told)
    return told + values
