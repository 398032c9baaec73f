"""``mlxcel-serve``: read the options, load the model, serve until told to stop."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import NoReturn, cast

import uvicorn
from rich.console import Console

from mlxcel.engine.engine import Engine, EngineOptions
from mlxcel.engine.errors import EngineError, InvalidRequestError
from mlxcel.engine.loading import load
from mlxcel.engine.types import Pooling
from mlxcel.generated.options import Options
from mlxcel.handlers.common.sampling import sampler_names
from mlxcel.handlers.context import Context

from .application import build
from .endpoint import BindingError
from .options import SettingsError, parse, print_help
from .runtime import Runtime

logger = logging.getLogger("mlxcel")

GRACE = 15
"""Seconds that running streams, or a model that is being loaded, have once the server is told to stop."""

LEVELS = {0: logging.CRITICAL, 1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO}


def main() -> None:
    """The console script. Ends the process with status 1 when a setting or the model can't be used."""
    try:
        options = resolved(parse(sys.argv[1:], os.environ))
        if options.help:
            print_help(Console())
            return
        if options.version:
            print(f"mlxcel {metadata.version('mlxcel')}")
            return
        _configure_logging(options)
        Service(options).run()
    except (SettingsError, EngineError, BindingError) as error:
        print(f"mlxcel-serve: {error}", file=sys.stderr)
        _leave(1)
    _leave(0)


def _leave(status: int) -> NoReturn:
    """End the process at once.

    The ordinary end of the interpreter takes MLX's threads down in an order that sometimes aborts the process.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def resolved(options: Options) -> Options:
    """Options that stand for others, put into their place.

    Raises:
        SettingsError: a file can't be read, or a sampler is unknown.
    """
    if options.sampler_seq:
        options = replace(options, samplers=options.sampler_seq)
    if options.grammar_file:
        options = replace(options, grammar=_read("--grammar-file", options.grammar_file))
    if options.chat_template_file:
        options = replace(options, chat_template=_read("--chat-template-file", options.chat_template_file))
    try:
        sampler_names(options.samplers)
    except InvalidRequestError as error:
        raise SettingsError(f"--samplers {options.samplers}: {error.message}") from None
    return options


def _read(option: str, name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{option} {name}: can't be read ({error})") from None


def _configure_logging(options: Options) -> None:
    level = logging.DEBUG if options.verbose else LEVELS.get(options.log_verbosity, logging.DEBUG)
    logging.basicConfig(level=level, format="%(levelname).1s %(name)s: %(message)s", stream=sys.stderr)
    for chatty in ("connexion", "httpx", "huggingface_hub", "uvicorn", "asyncio"):
        logging.getLogger(chatty).setLevel(max(level, logging.WARNING))


class _Server(uvicorn.Server):
    """Ends normally on a signal: uvicorn's own raises it again once everything is closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()


class Service:
    """The listening server and the model behind it, which is loaded while the first requests are told to wait."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._runtime = Runtime()
        self._started_at = int(time.time())
        self._failure: EngineError | None = None
        self._socket = _listen(options)
        config = uvicorn.Config(
            build(options, self._runtime),
            lifespan="on",
            log_config=None,
            access_log=False,
            timeout_keep_alive=min(options.timeout, 75),
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=GRACE,
        )
        self._server = _Server(config)

    def run(self) -> None:
        """Serve until a signal comes.

        Raises:
            EngineError: the model can't be loaded.
        """
        loader = threading.Thread(target=self._load, name="mlxcel-load", daemon=True)
        loader.start()
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._end(loader)
        if self._failure is not None:
            raise self._failure

    def _end(self, loader: threading.Thread) -> None:
        loader.join(GRACE)
        if loader.is_alive():
            # Nobody waits for the model any more.
            _leave(0)
        if self._runtime.context is not None:
            self._runtime.context.engine.stop()

    def _load(self) -> None:
        begun = time.perf_counter()
        try:
            engine = load_engine(self._options)
            engine.start()
        except EngineError as error:
            self._failure = error
            self._server.should_exit = True
            return
        except Exception as error:
            logger.debug("loading failed", exc_info=True)
            self._failure = EngineError(f"the model can't be loaded: {error}")
            self._server.should_exit = True
            return
        self._runtime.context = make_context(engine, self._options, self._started_at)
        host, port = self._socket.getsockname()[:2]
        seconds = time.perf_counter() - begun
        print(
            f"mlxcel serves {self._runtime.context.alias} at http://{host}:{port} "
            f"({engine.n_slots} slots of {engine.n_ctx} tokens, loaded in {seconds:.1f} s)",
            flush=True,
        )


def load_engine(options: Options) -> Engine:
    """The model that the options name, in an engine that isn't started yet.

    Raises:
        EngineError: it can't be loaded.
    """
    return Engine(load(options.model), engine_options(options))


def engine_options(options: Options) -> EngineOptions:
    """The engine's part of the options."""
    return EngineOptions(
        n_parallel=options.parallel,
        n_ctx=options.ctx_size,
        n_batch=options.batch_size,
        pooling=cast(Pooling | None, options.pooling),
        prompt_similarity=options.slot_prompt_similarity,
        context_shift=options.context_shift,
        threads=options.threads,
        chat_template=options.chat_template,
    )


def make_context(engine: Engine, options: Options, started_at: int) -> Context:
    """What handlers are given."""
    names = tuple(name.strip() for name in (options.alias or "").split(",") if name.strip())
    aliases = names or (Path(engine.info.path).name,)
    return Context(engine=engine, options=options, alias=aliases[0], aliases=aliases, started_at=started_at)


def _listen(options: Options) -> socket.socket:
    """The listening socket; made before anything slow, so that a taken port is told at once.

    Raises:
        SettingsError: the address can't be listened on.
    """
    try:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.host, options.port))
        listener.listen(1024)
    except OSError as error:
        raise SettingsError(
            f"can't listen on {options.host}:{options.port} ({error.strerror}); choose another --port"
        ) from None
    return listener
