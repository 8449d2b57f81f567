"""What a run leaves: the columns of every table, and the schemas that follow from them."""
