"""Moves under public degrees of an undirected network: alternating closed walks; start at ``closed_form``."""
