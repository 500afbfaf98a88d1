"""WINDOW w AS (…): named windows, written out where OVER names them."""

from __future__ import annotations

from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language.sql.aggregate import outside_queries
from anabranch.language.sql.dialect import Scope


def with_windows_written_out(tree: exp.Select, scope: Scope) -> None:
    """Gives every OVER of a SELECT that names a window what stands behind the name."""
    named: dict[str, exp.Window] = {}
    for window in tree.args.get("windows") or ():
        # A window may build on one before it
        name = window.this.name
        if name in named:
            raise scope.error(f"two windows are called '{name}'.", window)
        _fill(window, named, scope)
        named[name] = window
    for item in (*tree.expressions, *filter(None, (tree.args.get("qualify"),))):
        for node in list(outside_queries(item)):
            if isinstance(node, exp.Window):
                _fill(node, named, scope)


def _fill(window: exp.Window, named: dict[str, exp.Window], scope: Scope) -> None:
    alias = window.args.get("alias")
    if alias is None or not alias.name:
        return
    found = named.get(alias.name)
    if found is None:
        raise scope.error(
            f"there is no window '{alias.name}'.{suggest(alias.name, named)} Write WINDOW {alias.name} AS "
            "(…) after WHERE and GROUP BY.",
            window,
        )
    for part in ("partition_by", "order", "spec"):
        if not window.args.get(part) and found.args.get(part):
            value = found.args[part]
            copied = [one.copy() for one in value] if isinstance(value, list) else value.copy()
            window.set(part, copied)
    window.set("alias", None)
