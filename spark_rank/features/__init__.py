"""What an item looks like to a learner: factors, reviewers' ratings or given vectors; offset."""
