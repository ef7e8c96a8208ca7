"""Moves under two public cuboids or directed degrees: closed walks in a bipartite graph; start at ``closed_form``."""
