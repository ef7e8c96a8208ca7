"""Moves under a policy graph and public facts together (He, Machanavajjhala and Ding 2014); start at ``longest``."""
