"""Finished runs in MLflow: one MLflow run per pipeline, and a run's models as a pyfunc model."""
