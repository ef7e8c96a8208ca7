"""Minimal moves of any integer matrix: the Graver basis (``basis``), its longest element (``longest``), bounds."""
