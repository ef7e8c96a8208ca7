"""Cubes: few cuboids measured, all published; start at ``mechanism``, what to measure at ``cover`` and ``unequal``."""
