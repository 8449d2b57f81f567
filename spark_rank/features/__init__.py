"""What an item looks like to a learner: reference reviewers and the item offset."""
