"""Which executor each site runs on: a site stays on its executor as long as that lives.

Sites of a lost executor are gone until there is an executor with room for them: their partitions are spread
over the other sites meanwhile. A new executor takes such sites first; if there are none, it takes some from
executors that have two more than it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def bind(
    bound: Mapping[int, str], executors: Sequence[str], sites: int, most: int
) -> dict[int, str]:
    """The executor of each site that has one, given those of before; at most so many sites on each.

    >>> bind({}, ["a", "b"], 3, most=2)
    {0: 'a', 1: 'b', 2: 'a'}
    >>> bind({0: "a", 1: "b"}, ["a"], 2, most=1)
    {0: 'a'}
    """
    found = {site: at for site, at in bound.items() if at in executors and site < sites}
    load = Counter(dict.fromkeys(executors, 0))
    load.update(found.values())
    for site in range(sites):
        emptiest = min(executors, key=lambda executor: load[executor], default=None)
        if site not in found and emptiest is not None and load[emptiest] < most:
            found[site] = emptiest
            load[emptiest] += 1
    while executors:
        fullest, emptiest = max(load, key=lambda e: load[e]), min(load, key=lambda e: load[e])
        if load[fullest] < load[emptiest] + 2:
            break
        site = max(site for site, at in found.items() if at == fullest)
        found[site] = emptiest
        load[fullest] -= 1
        load[emptiest] += 1
    return dict(sorted(found.items()))
