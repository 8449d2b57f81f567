"""Formats in, contracts, quality checks, dictionaries, user blocks, splits, synthetic data."""
