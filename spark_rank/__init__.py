"""Distributed batch ranking on Spark: one ranking model per user."""

__version__ = "0.1.0"
