"""Beside the replay: the auditor, exact counts, the cost of making a cache, the text itself."""
