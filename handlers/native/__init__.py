"""The native API of llama-server."""
