"""Runners: families of mechanisms that look at data before they add noise; each has a ``draw`` that the gate calls."""
