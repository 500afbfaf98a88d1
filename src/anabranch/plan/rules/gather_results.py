"""In the central form, the results of all queries come together on one site before they leave."""

from __future__ import annotations

from dataclasses import replace

from anabranch.plan.draft import Aims, Draft
from anabranch.plan.plan import Output
from anabranch.plan.subquery import Gather, Path, Subquery


def gather_results(draft: Draft, aims: Aims) -> Draft:
    """The draft with a gathering subquery for every output that does not come from one site."""
    for output in draft.outputs:
        leaves = aims.sinks is None or output.query in aims.sinks
        if aims.central and leaves and not _is_central(draft, output):
            name = f"{output.query}@gather"
            node = Gather(draft.queries[output.query])
            draft = draft.with_subquery(Subquery(name, node, output.paths, output.query, name))
            gathered = replace(output, paths=(Path(name),))
            outputs = tuple(gathered if other is output else other for other in draft.outputs)
            draft = replace(draft, outputs=outputs)
    return draft


def _is_central(draft: Draft, output: Output) -> bool:
    origins = [draft.subqueries.get(path.origin) for path in output.paths]
    return all(part is not None and part.central for part in origins)
