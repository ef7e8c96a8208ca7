"""Names for authors of plug-ins, in one flat list: what to subclass, what to call, how to register. See ``docs/how-to/plug-ins.md``.

Mechanisms
    :class:`Mechanism` (settings), :class:`Calibrated` (with its noise fixed, without data), :class:`Noise` and :func:`noise_for`
    (the noise that a loss asks for), :func:`certified` (the sensitivity to scale it to), :class:`Sensitivity`, :class:`Query`,
    :class:`Policy`, :class:`Epsilon`, :class:`Rho`.
Cubes
    :class:`Strategy` and :class:`Choice`: which cuboids to measure.
Transforms
    :class:`Reduction`: a rewrite of the cells.
Partitions
    :class:`Partitioner` and :class:`Chooser`.
Registration
    :func:`register`, :func:`unregister`, :class:`Candidate`. An installed distribution registers by an entry point of the group
    ``policygraph.mechanisms``: its name, and a :class:`Mechanism`, its class, or a :class:`Candidate`.
Trusted code
    :func:`register_runner`: for mechanisms that must look at the data before they add noise. A runner sees true counts, and needs a proof.

Examples
--------
A mechanism that is registered is considered by ``auto`` and ``compare``, and known by its name.

>>> import policygraph as pg
>>> from policygraph.extend import Candidate, Epsilon, Mechanism, certified, noise_for, register, unregister
>>> class Cautious(Mechanism):
...     name = "Cautious"
...     def calibrate(self, query, policy, loss, sensitivity=None):
...         return pg.Laplace(self.name).calibrate(query, policy, loss, sensitivity)
>>> register("cautious", Cautious, accepts=lambda query, policy, loss: isinstance(loss, Epsilon))
>>> domain = pg.Domain({"age": 4})
>>> query, policy = pg.queries.identity(domain), pg.Policy(domain)
>>> pg.release(query, policy, [5, 0, 2, 9], epsilon=1, mechanism="cautious").record["mechanism"]
'Cautious'
>>> unregister("cautious")
>>> noise_for(pg.Epsilon("1/2"), certified(query, policy, pg.Epsilon("1/2"), None).power / pg.Epsilon("1/2").value).parameter
Fraction(2, 1)
"""

from __future__ import annotations

from policygraph.curator.gate import register_runner
from policygraph.mechanisms.base import Calibrated, Mechanism, Noise, certified, noise_for
from policygraph.mechanisms.candidates import GROUP, Candidate, register, unregister
from policygraph.mechanisms.partitioned.partitioners.base import Chooser, Partitioner
from policygraph.model.loss import Epsilon, Loss, Rho
from policygraph.model.policy import Policy
from policygraph.model.queries.base import Query
from policygraph.sensitivity.certificate import Sensitivity
from policygraph.transforms.cuboids.choose import Choice
from policygraph.transforms.cuboids.choose import CubeStrategy as Strategy
from policygraph.transforms.incidence.base import Reduction

__all__ = [
    "GROUP",
    "Calibrated",
    "Candidate",
    "Choice",
    "Chooser",
    "Epsilon",
    "Loss",
    "Mechanism",
    "Noise",
    "Partitioner",
    "Policy",
    "Query",
    "Reduction",
    "Rho",
    "Sensitivity",
    "Strategy",
    "certified",
    "noise_for",
    "register",
    "register_runner",
    "unregister",
]
