"""From an experiment to run records: its files made ready, one worker process per cell, one writer."""
