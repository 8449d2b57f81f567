"""What can be asked of and done with the runs of a store, beside making them."""
