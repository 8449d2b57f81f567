"""From raw files to user blocks: formats, quality checks, dictionaries, filters and splits."""
