"""Commands on the runs of a store, other than those that make them."""
