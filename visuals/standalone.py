"""A recorded run as one HTML file that needs no server and no network."""

from __future__ import annotations

import json
import re
from html import escape

from visuals.player import player_css, player_markup, player_palette, player_script

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src blob: data:; base-uri 'none'; form-action 'none'"
)
"""What the browser itself refuses to such a page: everything that is not in the file."""

_CSS = """
html{color-scheme:light}html.dark{color-scheme:dark}
body{margin:0;background:#fbfbfa;color:#1d1f23}.dark body{background:#15171b;color:#e8eaed}
main{max-width:1680px;margin:0 auto;padding:8px 20px}
h1{font:700 16px/1.3 Inter,system-ui,sans-serif;margin:4px 0}
h1 small{font-size:13px;font-weight:400;color:#596170;margin-left:8px}
.dark h1 small{color:#a7afbd}
#player dialog{margin:auto}
#player :is([data-large],[data-run],.share){display:none!important}
"""
"""What the page around the player has elsewhere; no large views, which need plotly.js."""

_SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="@policy">
<title>BatchSpec: a recorded run</title>
<style>@css</style>
</head>
<body>
<main>
<h1>BatchSpec <small>a recorded run of batched speculative decoding</small></h1>
@markup
</main>
<script id="payload" type="text/plain">@payload</script>
<script>
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark", dark.matches);
dark.addEventListener("change", follow);
follow();
// An address of a file cannot hold what is looked at, so the player gets one of its own.
(function (element, props, watch, trigger, server, location, history) {
@script
})(
  document,
  { value: document.querySelector("#payload").textContent, palette: @palette, alone: true },
  () => {}, () => {}, {}, { search: "", href: "" }, { state: null, replaceState() {} },
);
</script>
</body>
</html>
"""


def standalone_page(payload: str) -> str:
    """The player with a run in it, as an HTML file of its own.

    Args:
        payload: from `visuals.payload.pack`, which is base64 and so cannot end a script element.
    """
    parts = {
        "policy": escape(_POLICY),
        "css": player_css() + _CSS,
        "markup": player_markup(),
        "script": _inline(player_script()),
        "palette": _inline(json.dumps(player_palette())),
        "payload": payload,
    }
    # In one pass, so that no part is searched for the names of others.
    return re.sub(r"@([a-z]+)", lambda found: parts[found[1]], _SHELL)


def _inline(script: str) -> str:
    """A script that the HTML around it cannot end early; its strings mean the same."""
    return script.replace("</", "<\\/").replace("<!--", "<\\!--")
