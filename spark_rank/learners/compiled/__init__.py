"""Compiled arithmetic that several learners share."""
