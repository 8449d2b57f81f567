"""The work of one task on a batch of users: Arrow and NumPy in and out, no Spark."""
