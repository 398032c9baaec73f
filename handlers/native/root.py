"""``/``: a page that says what runs here."""

from __future__ import annotations

from html import escape
from importlib import metadata

from mlxcel.generated.native import routes

from ..context import Context

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>mlxcel</title>
<style>body {{ font: 16px/1.5 system-ui; max-width: 42em; margin: 3em auto; padding: 0 1em }}
pre {{ background: #8882; padding: 1em; overflow: auto }}</style>
<h1>mlxcel {version}</h1>
<p>Serves <b>{model}</b> ({slots} slots of {n_ctx} tokens) behind two APIs:</p>
<ul>
<li>the native API of llama-server: <code>POST /completion</code>, <code>/tokenize</code>, <code>/embedding</code>, ...</li>
<li>the OpenAI API: <code>POST /v1/chat/completions</code>, <code>/v1/completions</code>, <code>/v1/embeddings</code>, ...</li>
</ul>
<pre>curl {base}/completion -d '{{"prompt": "The capital of France is", "n_predict": 16}}'</pre>
<p>Is it up? <a href="/health">/health</a>. Which settings? <a href="/props">/props</a>. What is it doing? <a href="/slots">/slots</a>.</p>
</html>
"""


@routes.root_landing
async def landing(ctx: Context) -> str:
    """The page."""
    return PAGE.format(
        version=metadata.version("mlxcel"),
        model=escape(ctx.alias),
        slots=ctx.engine.n_slots,
        n_ctx=ctx.engine.n_ctx,
        base=escape(f"http://{ctx.options.host}:{ctx.options.port}"),
    )
