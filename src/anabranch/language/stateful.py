"""The nodes that remember rows, once for all who ask: partitioning, plans, and how a query set goes on."""

from __future__ import annotations

from typing import TypeAlias

from anabranch.language.groups import Aggregate, History
from anabranch.language.join import Join
from anabranch.language.numbered import Numbered
from anabranch.language.ranked import Ranked
from anabranch.language.timeline import Timeline

Stateful: TypeAlias = Aggregate | History | Join | Numbered | Ranked | Timeline
"""They bring rows together by keys."""
