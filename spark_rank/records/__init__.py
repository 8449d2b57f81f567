"""What a finished stage leaves in the manifest beside its tables: its facts, typed."""
