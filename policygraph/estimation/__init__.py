"""Post-processing: sees noisy values only; start at ``cubes``, ``histograms`` or ``networks``."""
