"""The rungs of the ladder: closed forms, reductions and searches, each for the policies it is proved for."""
