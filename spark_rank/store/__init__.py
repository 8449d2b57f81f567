"""A run on disk: layout, manifest, drafts, lease, waves, verify, promote, prune."""
