"""The lattice of cuboids and its orthogonal blocks; start at ``lattice``, then ``blocks``."""
