"""Queries written with Spark's DataFrames: the plan that Spark has analysed, read into the query graph."""
