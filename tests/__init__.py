"""The tests: they mirror the folders of the project."""
