"""Spans of OpenTelemetry for episodes, turns, calls of models and requests to servers.

They are off, and cost a comparison, until a program calls `set_up` with `AGENTGYMS_TRACES` set, or
`enable` is called. Names and attributes are OpenTelemetry's conventions for generative AI, and
`agentgyms.*`. Spans hold no prompts, answers, observations or actions.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import entry_points
from typing import Any, Final, Literal, TypeVar, cast
from urllib.parse import urlsplit

from agentgyms.core import imports
from agentgyms.core.errors import BadOption
from agentgyms.core.imports import __version__

VARIABLE: Final = "AGENTGYMS_TRACES"
"""Environment variable with the name of an exporter of OpenTelemetry, such as `console`."""

_EXPORTERS: Final = "opentelemetry_traces_exporter"
"""Group of entry points under which OpenTelemetry's packages register exporters."""

Kind = Literal["internal", "client", "server"]
Attributes = Mapping[str, Any]
_Complete = TypeVar("_Complete", bound=Callable[..., Awaitable[Any]])


class Span:
    """An open span; every method does nothing while spans are off."""

    def __init__(self, inner: Any = None) -> None:
        self._inner = inner

    def set(self, attributes: Attributes, name: str = "") -> None:
        """Add attributes, those that are None, nan or infinite left out; and rename the span."""
        if self._inner is not None:
            self._inner.set_attributes(_known(attributes))
            if name:
                self._inner.update_name(name)

    def fail(self, kind: str) -> None:
        """Mark the span as failed with a kind of error."""
        if self._inner is not None:
            from opentelemetry.trace import Status, StatusCode

            self._inner.set_attribute("error.type", kind)
            self._inner.set_status(Status(StatusCode.ERROR))

    def answered(self, prompt: int, response: int, *, finished: bool) -> None:
        """Add what a model's answer took, in tokens, and why it ended."""
        self.set(
            {
                "gen_ai.usage.input_tokens": prompt or None,
                "gen_ai.usage.output_tokens": response or None,
                "gen_ai.response.finish_reasons": ["stop" if finished else "length"],
            }
        )


def _known(attributes: Attributes) -> dict[str, Any]:
    return {
        name: value
        for name, value in attributes.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


_NO_SPAN: Final = Span()
_tracer: Any = None
"""Makes spans; None while they are off."""


def enable(provider: Any = None) -> None:
    """Turn spans on, with a `TracerProvider` of OpenTelemetry; None takes the program's own.

    Raises `BadOption` if OpenTelemetry is not installed.
    """
    global _tracer
    try:
        from opentelemetry import trace
    except ModuleNotFoundError as e:
        raise _not_installed(e) from None
    _tracer = trace.get_tracer("agentgyms", __version__, tracer_provider=provider)


def disable() -> None:
    """Turn spans off."""
    global _tracer
    _tracer = None


def set_up(service: str) -> None:
    """Send a program's spans to the exporter that `AGENTGYMS_TRACES` names; without it, do nothing.

    `service` is the program's name, unless `OTEL_SERVICE_NAME` is set. Raises `BadOption` if there
    is no such exporter, or OpenTelemetry's SDK is not installed.
    """
    wanted = os.environ.get(VARIABLE, "")
    if not wanted or _tracer is not None:
        return
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as e:
        raise _not_installed(e) from None
    found = {entry.name: entry for entry in entry_points(group=_EXPORTERS)}
    if wanted not in found:
        raise BadOption(
            f"{VARIABLE}={wanted!r:.40} names no exporter that is installed: expected one of "
            f"{', '.join(sorted(found)):.100} (opentelemetry-exporter-otlp-proto-http has otlp)"
        )
    named = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": service}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(found[wanted].load()()))
    trace.set_tracer_provider(provider)
    enable()


def _not_installed(error: ModuleNotFoundError) -> BadOption:
    return BadOption(
        f"spans: {imports.missing(error.name or 'OpenTelemetry', 'otel')}, or unset {VARIABLE}"
    )


def span(
    name: str,
    attributes: Attributes,
    kind: Kind = "internal",
    *,
    carrier: Mapping[str, str] | None = None,
) -> AbstractContextManager[Span]:
    """Return a span as a context, the parent of those opened in it; it records an exception.

    Attributes that are None, nan or infinite are left out. `carrier` has headers of a request that
    may name the parent.
    """
    if _tracer is None:
        return nullcontext(_NO_SPAN)
    return _Open(name, attributes, kind, carrier)


class _Open(AbstractContextManager[Span]):
    """A span of OpenTelemetry that is open while its context is."""

    def __init__(
        self, name: str, attributes: Attributes, kind: Kind, carrier: Mapping[str, str] | None
    ) -> None:
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        self._context = _tracer.start_as_current_span(
            name,
            kind=SpanKind[kind.upper()],
            attributes=_known(attributes),
            context=None if carrier is None else extract(carrier),
        )
        self._span = _NO_SPAN

    def __enter__(self) -> Span:
        self._span = Span(self._context.__enter__())
        return self._span

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is not None:
            self._span.set({"error.type": kind.__name__})
        self._context.__exit__(kind, *error)


def current() -> Span:
    """Return the span that is open here."""
    if _tracer is None:
        return _NO_SPAN
    from opentelemetry import trace

    return Span(trace.get_current_span())


def headers() -> dict[str, str]:
    """Return the headers by which a server's spans become children of the one open here."""
    carrier: dict[str, str] = {}
    if _tracer is not None:
        from opentelemetry.propagate import inject

        inject(carrier)
    return carrier


def chat(
    model: str, provider: str, sampling: Any, seed: int, url: str = ""
) -> AbstractContextManager[Span]:
    """Return the span of a model's answer; with the address of a server it is a client's.

    `provider` is the protocol or library that answers, such as `openai`. `sampling` is an object
    with `temperature`, `top_p` and `max_tokens`. An empty `url` stands for a model in this process.
    """
    if _tracer is None:
        return nullcontext(_NO_SPAN)
    address = urlsplit(url)
    return span(
        f"chat {model}",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.request.temperature": float(sampling.temperature),
            "gen_ai.request.top_p": float(sampling.top_p),
            "gen_ai.request.max_tokens": sampling.max_tokens,
            "gen_ai.request.seed": seed,
            "server.address": address.hostname,
            "server.port": address.port,
        },
        "client" if url else "internal",
    )


def traced(provider: str) -> Callable[[_Complete], _Complete]:
    """Return a decorator of `complete` of a policy in training: each answer is a span."""

    def decorate(complete: _Complete) -> _Complete:
        @functools.wraps(complete)
        async def answer(self: Any, messages: Any, sampling: Any, seed: int) -> Any:
            with chat("policy", provider, sampling, seed) as span:
                made = await complete(self, messages, sampling, seed)
                span.answered(len(made.prompt_ids), len(made.response_ids), finished=made.finished)
                return made

        return cast(_Complete, answer)

    return decorate
