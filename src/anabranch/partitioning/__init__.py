"""Which split of the streams suits a whole query set: requirement, reconcile, cost, search."""
