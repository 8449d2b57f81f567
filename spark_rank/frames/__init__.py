"""DataFrames in, DataFrames out: runs the work of `users` on Spark."""
