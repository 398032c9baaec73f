"""One API as a Connexion app: routed and validated from its bundled document.

Connexion reads the document, resolves operation IDs and builds the route tree. Its stock per-request work
(reflection, a second parse, a validator built anew) is replaced through its own extension points; each override
is tested by
itself, and the version is pinned.
"""

from __future__ import annotations

import logging
from typing import Any

from connexion import AsyncApp
from connexion.apps.asynchronous import AsyncApi, AsyncASGIApp
from connexion.lifecycle import ConnexionRequest, ConnexionResponse
from connexion.middleware.abstract import ROUTING_CONTEXT
from connexion.middleware.exceptions import ExceptionMiddleware
from connexion.middleware.request_validation import RequestValidationAPI, RequestValidationMiddleware
from connexion.middleware.routing import RoutingMiddleware
from connexion.operations import AbstractOperation
from connexion.resolver import Resolution, Resolver
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from mlxcel.engine.errors import EngineError
from mlxcel.generated.runtime import Operation
from mlxcel.handlers.errors import ApiError

from .answers import Gone, encode, in_surface
from .body import BodyValidator, ClientGone
from .endpoint import PAYLOAD, BindingError, Endpoint
from .normalise import Rules
from .parameters import ParameterReader
from .runtime import Runtime
from .schemas import Schema, SchemaSet

logger = logging.getLogger(__name__)


def build_surface(
    name: str,
    document: Schema,
    operations: tuple[Operation, ...],
    rules: Rules,
    error: type[ApiError],
    runtime: Runtime,
    *,
    report_unknown: bool,
) -> ASGIApp:
    """The ASGI app of a surface, complete: what is wrong with it is raised here and not at a first request.

    Raises:
        BindingError: an operation has no handler, or the document and the operation table don't agree.
    """
    schemas = SchemaSet(document)
    endpoints: dict[str, Endpoint] = {}
    for operation in operations:
        spec = document["paths"][operation.path][operation.method.lower()]
        validator = (
            BodyValidator.build(schemas, operation.schema, error, report_unknown=report_unknown)
            if operation.schema
            else None
        )
        reader = ParameterReader(operation, spec, schemas, error)
        answers = spec["responses"].get("200", {}).get("content", {})
        media_type = next(iter(answers), "application/json")
        endpoints[operation.operation_id] = Endpoint(
            operation, rules, reader, validator, error, runtime, media_type
        )
    app = _SurfaceApp(name, resolver=_TableResolver(endpoints), middlewares=MIDDLEWARES)
    app.add_api(document, base_path="", name=name)
    _install_errors(app, error)
    # Connexion builds its stack at the first request; here a mistake must end start-up.
    stack = app.middleware
    stack.app, stack.middleware_stack = stack._build_middleware_stack()
    return app


class _TableResolver(Resolver):  # type: ignore[misc]
    """Operation IDs lead to prepared endpoints."""

    def __init__(self, endpoints: dict[str, Endpoint]) -> None:
        super().__init__()
        self._endpoints = endpoints

    def resolve(self, operation: AbstractOperation) -> Resolution:
        identifier = operation.operation_id
        if identifier not in self._endpoints:
            raise BindingError(
                f"{identifier}: in the document but not in the operation table; run `make codegen`"
            )
        return Resolution(self._endpoints[identifier], identifier)


class _ExactRouting(RoutingMiddleware):  # type: ignore[misc]
    """Literal paths are looked up in a dict; templates go Connexion's way."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._exact: dict[tuple[str, str], str] = {}

    def add_api(self, specification: Any, base_path: str | None = None, **kwargs: Any) -> None:
        super().add_api(specification, base_path=base_path, **kwargs)
        for path, item in specification["paths"].items():
            for method, operation in item.items():
                if isinstance(operation, dict) and "operationId" in operation and "{" not in path:
                    self._exact[method.upper(), path] = operation["operationId"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        identifier = self._exact.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if identifier is None:
            await super().__call__(scope, receive, send)
            return
        routing = {"api_base_path": "", "operation_id": identifier}
        extensions = {**scope.get("extensions", {}), ROUTING_CONTEXT: routing}
        await self.app({**scope, "path_params": {}, "extensions": extensions}, receive, send)


class _Admission:
    """Connexion's validation step for one operation: ours instead, prepared once."""

    def __init__(self, endpoint: Endpoint, next_app: ASGIApp) -> None:
        self._endpoint = endpoint
        self._next = next_app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["extensions"][PAYLOAD] = await self._endpoint.admit(scope, receive)
        await self._next(scope, receive, send)


class _ValidationAPI(RequestValidationAPI):  # type: ignore[misc]
    def make_operation(self, operation: AbstractOperation) -> _Admission:
        return _Admission(operation.function, self.next_app)


class _Validation(RequestValidationMiddleware):  # type: ignore[misc]
    api_cls = _ValidationAPI


class _Direct:
    """Calls the endpoint without Connexion's per-request decorators."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint.answer(scope["extensions"][PAYLOAD], receive, send)


class _DirectApi(AsyncApi):  # type: ignore[misc]
    def make_operation(self, operation: AbstractOperation) -> _Direct:
        return _Direct(operation.function)


class _DirectApp(AsyncASGIApp):  # type: ignore[misc]
    api_cls = _DirectApi


class _SurfaceApp(AsyncApp):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._middleware_app = self.middleware.app = _DirectApp()


MIDDLEWARES = [ExceptionMiddleware, _ExactRouting, _Validation]


def _install_errors(app: AsyncApp, error: type[ApiError]) -> None:
    async def on_error(request: ConnexionRequest, failure: Exception) -> ConnexionResponse:
        if isinstance(failure, ClientGone | Gone):
            # Nobody reads this; the status is nginx's for a client that closed its request.
            return ConnexionResponse(499, body=b"")
        if isinstance(failure, HTTPException):
            failure = error(failure.status_code, failure.detail, headers=dict(failure.headers or {}))
        elif not isinstance(failure, ApiError | EngineError):
            logger.error("%s failed", request.url.path, exc_info=failure)
        answer = in_surface(failure, error)
        return ConnexionResponse(
            answer.status,
            mimetype="application/json; charset=utf-8",
            body=encode(answer.envelope()),
            headers=answer.headers,
        )

    for kind in (ApiError, EngineError, HTTPException, ClientGone, Gone, Exception):
        app.add_error_handler(kind, on_error)
