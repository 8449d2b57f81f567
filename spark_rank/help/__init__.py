"""What the command line says of itself: pages of help, keys of the configuration, learners."""
