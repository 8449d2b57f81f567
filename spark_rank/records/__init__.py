"""The facts of finished stages: what a stage leaves in the manifest beside its tables, typed."""
