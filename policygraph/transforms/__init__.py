"""Changes of coordinates of a histogram: the P_G transform (``incidence``) and interaction blocks (``cuboids``)."""
