"""Translation shared by the surfaces: prompts, sampling settings, timings, probabilities."""
