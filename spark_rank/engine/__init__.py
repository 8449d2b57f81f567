"""Spark plumbing: session, run store, progress, and learners run over user blocks."""
