"""Item features: factors, reviewers' ratings or given vectors; item offsets and the prior."""
