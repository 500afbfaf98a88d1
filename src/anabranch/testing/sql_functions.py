"""Functions of texts, times, lists and structs as DuckDB has them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anabranch.language.expression import Call, Literal

_SAME = frozenset((
    "regexp_matches", "regexp_full_match", "regexp_replace", "reverse", "translate", "concat_ws", "hex",
    "last_day", "monthname", "dayname", "trunc", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "degrees", "radians", "isnan", "isfinite", "list_sort", "list_sum", "list_min", "list_max",
    "list_reverse",     "list_concat", "list_contains", "list_slice", "epoch_us", "make_date",
))  # fmt: skip
_OTHERWISE = {
    "split": "string_split({0}, {1})",
    "map_extract_value": "list_filter({0}, lambda x: x.key = {1})[1].value",
    "map_keys": "list_transform({0}, lambda x: x.key)",
    "map_values": "list_transform({0}, lambda x: x.value)",
    "position_of": "CAST(strpos({0}, {1}) AS BIGINT)",
    "lpad": "lpad({0}, CAST({1} AS INTEGER), {2})",
    "rpad": "rpad({0}, CAST({1} AS INTEGER), {2})",
    "repeat": "repeat({0}, CAST({1} AS BIGINT))",
    "regexp_extract_all": "regexp_extract_all({0}, {1})",
    "regexp_count": "CAST(len(regexp_extract_all({0}, {1})) AS BIGINT)",
    "octet_length": "CAST(strlen({0}) AS BIGINT)",
    "base64": "to_base64(encode({0}))",
    "unbase64": "decode(from_base64({0}))",
    "unhex": "decode(unhex({0}))",
    "epoch_ms": "epoch_ms({0})",
    "from_epoch": "make_timestamp(CAST(round(CAST({0} AS DOUBLE) * 1000000) AS BIGINT))",
    "from_epoch_ms": "make_timestamp(CAST({0} AS BIGINT) * 1000)",
    "from_epoch_us": "make_timestamp(CAST({0} AS BIGINT))",
    "add_days": "({0} + CAST({1} AS INTEGER))",
    "add_months": "({0} + to_months(CAST({1} AS INTEGER)))",
    "isodow": "CAST(date_part('isodow', {0}) AS BIGINT)",
    "isoyear": "CAST(date_part('isoyear', {0}) AS BIGINT)",
    "millisecond": "CAST(date_part('millisecond', {0}) AS BIGINT)",
    "microsecond": "CAST(date_part('microsecond', {0}) AS BIGINT)",
    "bit_count": "CAST(bit_count({0}) AS BIGINT)",
    "element": "list_extract({0}, {1})",
    "field": "struct_extract({0}, {1})",
    "list_length": "CAST(len({0}) AS BIGINT)",
    "list_join": "array_to_string({0}, {1})",
    "list_distinct": "list_sort(list_distinct({0}))",
    "sort_array": "list_sort({0}, 'ASC', 'NULLS FIRST')",
}


def function_sql(call: Call, parts: Sequence[str]) -> str | None:
    """A function over its arguments as DuckDB SQL; None if there is no such function."""
    name = call.function
    if name in ("lpad", "rpad") and len(parts) == 2:
        parts = [*parts, "' '"]
    if name in _SAME:
        return f"{name}({', '.join(parts)})"
    if name in _OTHERWISE:
        return _OTHERWISE[name].format(*parts)
    match name:
        case "regexp_extract":
            numbers = [f"CAST({part} AS INTEGER)" for part in parts[2:]]
            return f"regexp_extract({', '.join([*parts[:2], *numbers])})"
        case "strftime" | "strptime" | "try_strptime" | "strpdate":
            written = str(call.arguments[1].value) if isinstance(call.arguments[1], Literal) else ""
            back = written.replace("%6f", "%f").replace("%3f", "%g").replace("%.f", ".%f")
            quoted = "'" + back.replace("'", "''") + "'"
            if name == "strpdate":
                return f"CAST(strptime({parts[0]}, {quoted}) AS DATE)"
            return f"{name}({parts[0]}, {quoted})"
        case "json_text":
            path = re.sub(r"\[''(.*?)''\]", r'."\1"', parts[1])
            return f"json_extract_string({parts[0]}, {path})"
        case "list":
            return f"[{', '.join(parts)}]"
        case "struct":
            names = [str(part.value) for part in call.arguments[0::2] if isinstance(part, Literal)]
            pairs = zip(names, parts[1::2], strict=True)
            return "{" + ", ".join(f"'{one}': {value}" for one, value in pairs) + "}"
    return None
