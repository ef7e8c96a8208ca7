"""What an attacker learns: estimates from public facts and noisy answers, and traces of participation in networks."""

from policygraph.attacks import participation
from policygraph.attacks.linear import Reconstruction, reconstruct

__all__ = ["Reconstruction", "participation", "reconstruct"]
