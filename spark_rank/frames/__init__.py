"""DataFrame in, DataFrame out: hands the work of `users` to Spark."""
