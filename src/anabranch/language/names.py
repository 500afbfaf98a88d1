"""Names that Spark, DuckDB, Flink and PostgreSQL give to functions that are the same here."""

from __future__ import annotations

from collections.abc import Mapping

ALIASES: Mapping[str, str] = {
    "substr": "substring", "pow": "power", "ceiling": "ceil", "char_length": "length",
    "character_length": "length", "strlen": "octet_length", "lcase": "lower", "ucase": "upper",
    "dayofyear": "doy", "dayofmonth": "day", "weekofyear": "week", "datepart": "date_part",
    "prefix": "starts_with", "suffix": "ends_with", "startswith": "starts_with", "endswith": "ends_with",
    "nvl": "coalesce", "regexp_like": "regexp_matches",
    "rlike": "regexp_matches", "regexp": "regexp_matches", "btrim": "trim", "iff": "if", "iif": "if",
    "truncate": "trunc", "list_value": "list", "array": "list", "list_pack": "list",
    "element_at": "element", "list_extract": "element", "array_extract": "element", "list_element": "element",
    "array_contains": "list_contains", "list_has": "list_contains", "array_has": "list_contains",
    "array_join": "list_join", "array_to_string": "list_join", "array_sort": "list_sort",
    "array_distinct": "list_distinct", "array_max": "list_max", "array_min": "list_min",
    "array_reverse": "list_reverse", "array_concat": "list_concat",
    "array_cat": "list_concat", "list_cat": "list_concat", "array_slice": "list_slice",
    "named_struct": "struct", "to_hex": "hex", "to_base64": "base64",
    "from_base64": "unbase64", "from_hex": "unhex", 
    "timestamp_seconds": "from_epoch", "timestamp_millis": "from_epoch_ms",
    "timestamp_micros": "from_epoch_us", "unix_millis": "epoch_ms", "unix_micros": "epoch_us",
    "try_to_timestamp": "try_strptime",
    "list_len": "list_length", "array_sum": "list_sum", "make_timestamp_ms": "from_epoch_ms",
}  # fmt: skip
