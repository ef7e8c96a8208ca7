"""Moves: integer changes that lead from a data set to a neighbour; start at ``move``, then the families of theorems."""
