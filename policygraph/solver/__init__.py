"""Whole-number programs whose answers rest on no solver's word; start at ``program``."""
