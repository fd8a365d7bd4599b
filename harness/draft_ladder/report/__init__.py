"""From run records, and nothing else, to statistics, tables, charts and judgements."""

import os

# Charts are files. A notebook's MPLBACKEND, inherited, would fail matplotlib's very import.
os.environ["MPLBACKEND"] = "agg"
