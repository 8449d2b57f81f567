"""A finished run as an object: its models, lists and explanations, read without Spark."""
