"""Graphical models of tables: junction trees, belief propagation, fitting to noisy and exact tables, whole records."""
