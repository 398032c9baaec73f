"""Compiles specs/*.yaml into generated/: bundled OpenAPI documents, models, routes, field rules and options.

Run as ``python -m codegen``; each module is one step and ``codegen.__main__`` strings them together.
"""
