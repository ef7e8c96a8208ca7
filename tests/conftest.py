"""What all tests share: random examples are the same in every automatic run, so that a red run is the change's fault."""

import os

from hypothesis import settings

settings.register_profile("automatic", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("automatic")
