"""Generated requests to every operation, and checks of every answer: ``python -m tests.fuzz``."""
