"""The package that a cluster needs: wheel, packed environment, jobs."""
