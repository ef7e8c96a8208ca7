"""What an attacker learns: estimates, odds and games from public facts and noisy answers, and traces of participation in networks.

Start at :func:`attack`, which says it on one page.
"""

from policygraph.attacks import participation
from policygraph.attacks.games import (
    Channel,
    Discriminant,
    Game,
    channel,
    discriminant,
    free_lunch_bound,
    game,
    group_epsilon,
)
from policygraph.attacks.linear import Reconstruction, reconstruct
from policygraph.attacks.lint import Attack, attack
from policygraph.attacks.odds import (
    EffectiveEpsilon,
    LogOdds,
    LossBound,
    Posterior,
    effective_epsilon,
    fibre,
    log_odds,
    loss_bound,
    posterior,
)
from policygraph.attacks.unstated import UnstatedFact, unstated_facts

__all__ = [
    "Attack",
    "Channel",
    "Discriminant",
    "EffectiveEpsilon",
    "Game",
    "LogOdds",
    "LossBound",
    "Posterior",
    "Reconstruction",
    "UnstatedFact",
    "attack",
    "channel",
    "discriminant",
    "effective_epsilon",
    "fibre",
    "free_lunch_bound",
    "game",
    "group_epsilon",
    "log_odds",
    "loss_bound",
    "participation",
    "posterior",
    "reconstruct",
    "unstated_facts",
]
