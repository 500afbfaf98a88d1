"""What is computed from groups, in terms of the columns that groups have."""

from __future__ import annotations

from anabranch.language.expression import Call, Column, Expression, Named, parts_of


def with_keys(expression: Expression, keys: list[Named], given: set[str]) -> Expression:
    """The expression with the column of a key in place of what is written like it."""
    weights = {_weight(key.expression) for key in keys}
    written = {str(key.expression): key.name for key in reversed(keys)}
    changed: dict[int, Expression] = {}
    for part in parts_of(expression):
        new = part
        key = written.get(str(part)) if _weight(part) in weights else None
        if key is not None and not (isinstance(part, Column) and part.name in given):
            new = Column(key)
        elif isinstance(part, Call):
            new = Call(part.function, tuple(changed[id(inner)] for inner in part.arguments))
        changed[id(part)] = new
    return changed[id(expression)]


def _weight(expression: Expression) -> int:
    return expression.weight if isinstance(expression, Call) else 1
