"""Settings of every Python test: no deadline for a hypothesis example, because machines may be busy."""

from hypothesis import settings

settings.register_profile("earlybird", deadline=None, max_examples=50)
settings.load_profile("earlybird")
