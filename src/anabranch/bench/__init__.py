"""Benchmarks against Spark Structured Streaming: part of the product, so that anyone can repeat them."""
