"""Settings of all tests: property tests have no deadline (a loaded machine is no failure) and fixed examples."""

from hypothesis import settings

settings.register_profile("graphrag_pipeline", deadline=None, derandomize=True)
settings.load_profile("graphrag_pipeline")
