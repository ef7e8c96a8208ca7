"""How much one neighbour step can change an answer, with its proof; start at ``ladder``."""

from policygraph.sensitivity.certificate import Sensitivity, Witness
from policygraph.sensitivity.ladder import sensitivity

__all__ = ["Sensitivity", "Witness", "sensitivity"]
