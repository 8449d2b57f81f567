"""What one task does with a batch of users: Arrow and NumPy in and out, no Spark."""
