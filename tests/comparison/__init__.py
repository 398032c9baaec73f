"""llama-server itself beside this server: the recorded requests, played against both."""
