"""Late rows that still count: which nodes they come to.

A stream says whether its late rows are left out of everything, or of closed windows only. In the second case
they go through all stateless nodes; the first stateful one takes those that it still has a place for
(`operators/late.py`), and what it gives is never late.
"""

from __future__ import annotations

from anabranch.language.lookup import Lookup
from anabranch.language.node import Node, Stream
from anabranch.language.stamped import Stamped
from anabranch.language.stateless import Branch, Filter, Project, Union
from anabranch.language.unnest import Unnest
from anabranch.language.windowed import Windowed

STATELESS = (Filter, Branch, Project, Union, Windowed, Unnest, Lookup, Stamped)


def meets_late(node: Node) -> bool:
    """Whether some of a node's rows may be older than its watermark."""
    waiting, met = [node], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Stream) and part.late_rows:
            return True
        if isinstance(part, STATELESS) and id(part) not in met:
            met.add(id(part))
            waiting += part.inputs
    return False
