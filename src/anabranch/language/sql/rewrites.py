"""Functions as other systems call them, made of those there are: one entry for each name.

What depends on the dialect of a text, on the types of arguments or on their order is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Call, Expression, Literal
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.division import remainder
from anabranch.language.sql.meanings import MEANINGS
from anabranch.language.sql.time_rewrites import TIME_REWRITES, Arguments, Rewrite, text_constant

_SEVERAL = re.compile(r"""\*|\.\.|\?|\[[^\]'"]*[:,]""")
_REGEX_SIGNS = re.compile(r"[\\.+*?()|\[\]{}^$]")


def _regexp_replace(arguments: Arguments, scope: Scope) -> Expression:
    everywhere = scope.spelling.name in ("spark", "flink") and len(arguments) == 3
    return Call("regexp_replace", (*arguments, *((Literal("g"),) if everywhere else ())))


def _regexp_extract(arguments: Arguments, scope: Scope) -> Expression:
    text, pattern, *group = arguments
    if not group and scope.spelling.name in ("spark", "flink"):
        group = [Literal(1 if scope.spelling.name == "spark" else 0)]
    return Call("regexp_extract", (text, pattern, *group))


def _split(arguments: Arguments, scope: Scope) -> Expression:
    text, separator = arguments
    written = text_constant(separator, "the separator of SPLIT")
    if scope.spelling.name == "spark":
        if _REGEX_SIGNS.search(re.sub(r"\\(.)", "", written)):
            raise LanguageError(f"SPLIT by the regular expression '{written}' is not available.")
        written = re.sub(r"\\(.)", r"\1", written)
    return Call("split", (text, Literal(written)))


def _length_of(arguments: Arguments, scope: Scope) -> Expression:
    nested = isinstance(scope.kind(arguments[0]), pl.List)
    return Call("list_length" if nested else "length", (arguments[0],))


def _json_path(arguments: Arguments, scope: Scope) -> Expression:
    text, *steps = arguments
    keys = [text_constant(step, "a JSON path") for step in steps]
    path = keys[0] if keys[0].startswith("$") else json_path(keys)
    if path is keys[0] and _SEVERAL.search(path):
        raise LanguageError(
            f"the JSON path {path} means several values, which are no one text: name one, as in $.a.b[0]."
        )
    if len(keys) == 1 and keys[0].startswith("/"):
        path = json_path(
            [step.replace("~1", "/").replace("~0", "~") for step in keys[0][1:].split("/")]
        )
    return Call("json_text", (text, Literal(path)))


def _mod(arguments: Arguments, scope: Scope) -> Expression:
    left, right = arguments
    whole = all(scope.kind(side).is_integer() for side in arguments)
    return remainder(left, right, whole, scope.spelling)


def json_path(keys: Sequence[str | int]) -> str:
    """`$.a.b[0]` of keys and places."""
    parts = [f"[{key}]" if isinstance(key, int) or key.isdigit() else f"['{key}']" for key in keys]
    return f"${''.join(parts)}"


def _log(arguments: Arguments, scope: Scope) -> Expression:
    if len(arguments) == 2:
        base, value = arguments
        return Call("/", (Call("ln", (value,)), Call("ln", (base,))))
    return Call(scope.spelling.functions["log"], tuple(arguments))


def _concat(arguments: Arguments, scope: Scope) -> Expression:
    if len(arguments) == 2 and all(isinstance(scope.kind(one), pl.List) for one in arguments):
        return Call("list_concat", tuple(arguments))
    if scope.spelling.concat_skips_null:
        arguments = [_or_nothing(one, scope) for one in arguments]
    return Call("concat", tuple(arguments))


def _or_nothing(value: Expression, scope: Scope) -> Expression:
    """A value as a text, NULL as the empty one; bytes stay, and are refused."""
    kind = scope.kind(value)
    if kind == pl.Binary or (isinstance(value, Literal) and value.value is not None):
        return value
    text = value if kind == pl.String else value.cast("string")
    return Call("coalesce", (text, Literal("")))


def _reverse(arguments: Arguments, scope: Scope) -> Expression:
    nested = isinstance(scope.kind(arguments[0]), pl.List)
    return Call("list_reverse" if nested else "reverse", tuple(arguments))


def _locate(arguments: Arguments, scope: Scope) -> Expression:
    return Call("position_of", (arguments[1], arguments[0]))


def _in_place(name: str) -> Rewrite:
    return lambda arguments, scope: Call(name, tuple(arguments))


def _map(arguments: Arguments, scope: Scope) -> Expression:
    """`MAP(['a', 'b'], [x, y])`, or `map('a', x, 'b', y)` of Spark: a list of keys with their values."""
    pairs = list(zip(arguments[0::2], arguments[1::2], strict=False))
    keys, values = arguments[0], arguments[1]
    if len(arguments) == 2 and isinstance(keys, Call) and keys.function == "list":
        listed = values.arguments if isinstance(values, Call) and values.function == "list" else ()
        if len(listed) != len(keys.arguments):
            raise LanguageError("MAP needs two lists of the same length: MAP(['a', 'b'], [x, y])")
        pairs = list(zip(keys.arguments, listed, strict=True))
    known = [key.value if isinstance(key, Literal) else None for key, _ in pairs]
    if 2 * len(pairs) < len(arguments) or None in known or len(set(known)) < len(known):
        raise LanguageError(
            "MAP needs keys that are constants and different from each other, each with a value"
        )
    return Call(
        "list",
        tuple(
            Call("struct", (Literal("key"), key, Literal("value"), value)) for key, value in pairs
        ),
    )


REWRITES: Mapping[str, tuple[int, int, Rewrite]] = {
    **TIME_REWRITES, **MEANINGS,
    "regexp_replace": (3, 4, _regexp_replace), "regexp_extract": (2, 3, _regexp_extract),
    "split": (2, 2, _split), "string_split": (2, 2, _split), "string_to_array": (2, 2, _split),
    "str_split": (2, 2, _split),
    "length": (1, 1, _length_of), "len": (1, 1, _length_of), "size": (1, 1, _length_of),
    "cardinality": (1, 1, _length_of), "array_length": (1, 2, _length_of), "array_size": (1, 1, _length_of),
    "json_extract_string": (2, 2, _json_path), "get_json_object": (2, 2, _json_path),
    "json_value": (2, 2, _json_path), "json_extract_path_text": (2, 99, _json_path),
    "json_extract_scalar": (2, 2, _json_path),
    "log": (1, 2, _log), "mod": (2, 2, _mod),
    "concat": (1, 999, _concat), "reverse": (1, 1, _reverse),
    "strpos": (2, 2, _in_place("position_of")), "instr": (2, 2, _in_place("position_of")),
    "locate": (2, 2, _locate), "charindex": (2, 2, _locate), "position": (2, 2, _locate),
    "map": (2, 999, _map), "nvl2": (3, 3, lambda a, scope: Call("case", (a[0].is_not_null(), a[1], a[2]))),
    "isnull": (1, 1, lambda a, scope: a[0].is_null()),
    "isnotnull": (1, 1, lambda a, scope: a[0].is_not_null()),
    "split_index": (3, 3, lambda a, scope: Call("split_part", (a[0], a[1], _plus_one(a[2])))),
    "log2": (1, 1, lambda a, scope: Call("/", (Call("ln", (a[0],)), Call("ln", (Literal(2),))))),
    "square": (1, 1, lambda a, scope: a[0] * a[0]),
}  # fmt: skip
"""The least and the most arguments of each, and what it stands for."""


def _plus_one(number: Expression) -> Expression:
    if isinstance(number, Literal) and type(number.value) is int:
        return Literal(number.value + 1)
    return number
