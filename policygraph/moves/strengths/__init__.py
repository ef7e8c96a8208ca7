"""Three strengths of induced neighbours, and the cap on records; start at ``overview``."""
