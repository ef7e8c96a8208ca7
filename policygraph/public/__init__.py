"""Data-free and deterministic: domains, graphs, facts, policies, queries, moves, sensitivities, losses, files."""
