"""Random expressions over the columns at hand; what each family of kinds has is in other modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anabranch.testing.fuzz import numbers, texts, times, truths
from anabranch.testing.fuzz.draw import DECIMALS, FLOATS, INTEGERS, Both, Draw

FAMILIES = {
    "int": INTEGERS, "float": FLOATS, "text": ("text",), "truth": ("truth",), "stamp": ("stamp",),
    "day": ("day",), "decimal": DECIMALS, "u64": ("u64",),
}  # fmt: skip
"""Kinds whose values can be compared and mixed."""
_MAKERS: dict[str, Callable[[ExpressionWriter, int], Both]] = {}


def family(kind: str) -> str:
    return next(name for name, kinds in FAMILIES.items() if kind in kinds)


@dataclass(frozen=True)
class ExpressionWriter:
    """Writes expressions with the choices of a seed."""

    draw: Draw
    columns: Sequence[Both]

    def known(self, family: str, tame: bool = False) -> list[Both]:
        """The columns of a family that can be computed and compared with."""
        return [
            column
            for column in self.columns
            if column.kind in FAMILIES[family] and column.exact and (column.tame or not tame)
        ]

    def families(self) -> list[str]:
        """The families of the columns at hand."""
        return list(dict.fromkeys(family(column.kind) for column in self.columns if column.exact))

    def any(self, depth: int) -> Both:
        """An expression of any family that there is a column of, or a condition."""
        return self.of(self.draw.pick([*self.families(), "truth", "int"]), depth)

    def of(self, family: str, depth: int) -> Both:
        """An expression of a family: a column or a constant, or at greater depth something computed."""
        if depth <= 0 or self.draw.chance(0.15):
            return self.leaf(family)
        if self.draw.chance(0.25):
            return self._chosen(family, depth)
        return _MAKERS[family](self, depth - 1)

    def leaf(self, family: str, tame: bool = False) -> Both:
        known = self.known(family, tame)
        if known and self.draw.chance(0.8):
            return self.draw.pick(known)
        return self.constant(family, tame)

    def constant(self, family: str, tame: bool = True) -> Both:
        match family:
            case "int":
                return numbers.whole(self.draw, tame)
            case "float":
                return numbers.fraction(self.draw)
            case "decimal":
                return self.draw.pick(self.known("decimal"))
            case "text":
                return texts.quoted(self.draw)
            case "stamp":
                return times.stamp(self.draw)
            case "day":
                return times.day(self.draw)
            case "u64":
                return Both("CAST(7 AS UBIGINT)", "CAST(7 AS UBIGINT)", "u64")
        return Both(*(self.draw.pick(("TRUE", "FALSE")),) * 2, "truth")

    def _chosen(self, family: str, depth: int) -> Both:
        """One of several values of a family: CASE, COALESCE, IF, NULLIF, GREATEST, LEAST."""
        first, second = (self.of(family, depth - 1) for _ in range(2))
        kind = "i64" if family == "int" else first.kind
        tame, exact = first.tame and second.tame, first.exact and second.exact

        def made(ours: str, duck: str) -> Both:
            return Both(ours, duck, kind, tame, exact)

        form = self.draw.randrange(8)
        if form in (4, 5, 6) and not exact:
            form = 0
        if form in (5, 6) and family == "truth":
            form = 1
        match form:
            case 7:
                return self._cased(made, first, second)
            case 0 | 1:
                when = truths.condition(self, depth - 1)
                other = self.draw.chance(0.7)
                tail = [f" ELSE {second.ours}", f" ELSE {second.duck}"] if other else ["", ""]
                return made(
                    f"CASE WHEN {when.ours} THEN {first.ours}{tail[0]} END",
                    f"CASE WHEN {when.duck} THEN {first.duck}{tail[1]} END",
                )
            case 2:
                when = truths.condition(self, depth - 1)
                return made(
                    f"IF({when.ours}, {first.ours}, {second.ours})",
                    f"CASE WHEN {when.duck} THEN {first.duck} ELSE {second.duck} END",
                )
            case 3:
                name = self.draw.pick(("COALESCE", "IFNULL"))
                return made(
                    f"{name}({first.ours}, {second.ours})",
                    f"coalesce({first.duck}, {second.duck})",
                )
            case 4:
                return made(
                    f"NULLIF({first.ours}, {second.ours})", f"nullif({first.duck}, {second.duck})"
                )
        name = "GREATEST" if form == 5 else "LEAST"
        return made(
            f"{name}({first.ours}, {second.ours})", f"{name.lower()}({first.duck}, {second.duck})"
        )

    def _cased(self, made: Callable[[str, str], Both], first: Both, second: Both) -> Both:
        """CASE of a value."""
        family = self.draw.pick(("int", "text"))
        value, one, other = (self.leaf(family), self.constant(family), self.constant(family))
        return made(
            f"CASE {value.ours} WHEN {one.ours} THEN {first.ours} WHEN {other.ours} THEN {second.ours} "
            f"ELSE {first.ours} END",
            f"CASE {value.duck} WHEN {one.duck} THEN {first.duck} WHEN {other.duck} THEN {second.duck} "
            f"ELSE {first.duck} END",
        )


_MAKERS.update(
    {
        "int": numbers.computed_whole,
        "float": numbers.computed_fraction,
        "decimal": numbers.computed_decimal,
        "text": texts.computed,
        "truth": truths.condition,
        "stamp": times.computed_stamp,
        "day": times.computed_day,
        "u64": lambda writer, depth: writer.leaf("u64"),
    }
)
