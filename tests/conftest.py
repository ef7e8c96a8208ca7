"""What all tests share: random examples are the same in every automatic run, so that a red run is the change's fault."""

import os

from hypothesis import settings

# No test looks at the clock: an example may take as long as a busy machine needs.
settings.register_profile("automatic", derandomize=True, deadline=None)
settings.register_profile("patient", deadline=None)
settings.load_profile("automatic" if os.environ.get("CI") else "patient")
