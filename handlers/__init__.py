"""One coroutine per operation ID: they translate between a surface and the engine, they don't compute."""
