"""Specification files: streams, queries, sinks and settings of a run in one YAML document."""

from anabranch.spec.file import Spec, read_spec

__all__ = ["Spec", "read_spec"]
