"""Losses over pairs, and the solvers that lower them."""
