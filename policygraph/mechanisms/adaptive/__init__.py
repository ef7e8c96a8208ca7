"""Wide tables: which tables are measured is chosen from the data, privately; a graphical model gives the others."""
