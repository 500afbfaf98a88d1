"""What a node of Spark's plan gives here: a query, and which of its columns is which of Spark's."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.language.builder import Query
from anabranch.language.dataframe.catalyst import SparkNode
from anabranch.language.dataframe.values import SparkColumns, refused
from anabranch.language.dataframe.window import FoundWindow


@dataclass
class Rows:
    """What a node of the plan gives, and which of its columns is which."""

    query: Query
    scope: SparkColumns
    windows: dict[int, FoundWindow]
    """Windows that are columns in Spark and only keys to group by here."""


def output_of(part: SparkNode) -> list[SparkNode]:
    """The columns that a node of a plan gives, as Spark has them."""
    match part.kind:
        case "Project":
            return part.expressions("projectList")
        case "Aggregate":
            return part.expressions("aggregateExpressions")
        case "Expand" | "StreamingRelation" | "StreamingRelationV2":
            return part.expressions("output")
        case "Generate":
            return [*output_of(part.children[0]), *part.expressions("generatorOutput")]
        case "Join":
            left, right = (output_of(child) for child in part.children)
            kind = str(part.fields["joinType"].get("object", ""))
            return left if kind.endswith(("LeftSemi$", "LeftAnti$")) else [*left, *right]
    if not part.children:
        raise refused(part)
    return output_of(part.children[0])


def unused(name: str, names: list[str]) -> str:
    """The name, or one like it that is not among these."""
    number, wanted = 2, name
    while wanted in names:
        wanted, number = f"{name}_{number}", number + 1
    return wanted
