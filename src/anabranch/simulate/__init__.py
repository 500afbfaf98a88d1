"""The simulator: a model of a cluster under the policies, arbiter, tuning and protocol of the engine."""
