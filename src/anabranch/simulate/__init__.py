"""The simulator: a model of a cluster under the policies, the arbiter and the tuning that the engine uses."""
