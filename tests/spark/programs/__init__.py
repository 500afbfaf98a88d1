"""Structured Streaming programs as people write them, each of which Spark and Anabranch run."""
