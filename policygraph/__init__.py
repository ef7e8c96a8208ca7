"""policygraph."""
