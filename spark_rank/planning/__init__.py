"""Estimates of a run's time, memory and tasks, from the sizes of its data and measured rates.

Nothing here imports Spark: sizes and settings come in as plain numbers and texts.
"""
