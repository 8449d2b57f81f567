"""One long sequence of examples: files, ensembles and their rivals on it."""
