"""Losses over pairs, and the solvers that minimise them."""
