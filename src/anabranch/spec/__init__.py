"""Specification files: streams, queries, sinks and settings of a run in one SQL or YAML file."""

from anabranch.spec.file import read_spec
from anabranch.spec.spec import Spec

__all__ = ["Spec", "read_spec"]
