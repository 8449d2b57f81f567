"""Ridge problems with a free intercept: solutions, paths of C, leave-pair-out errors."""
