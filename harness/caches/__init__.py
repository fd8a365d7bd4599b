"""From a token file to a static cache: counted in memory, within a bound, or on a cluster."""
