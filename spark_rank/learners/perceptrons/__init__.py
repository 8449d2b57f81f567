"""On-line rules, round by round, and ensembles of them."""
