"""Traces as one compressed text that the browser player reads."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any

from batchspec.invariants import ERROR_BOUNDS, INVARIANTS
from batchspec.trace import ROLES, SLOT_STATES, Trace
from visuals.heatmap import VIEWS
from visuals.sentence import PHASES, cause, sentence, story


def pack(traces: Sequence[Trace], live: bool = False, link: str = "") -> str:
    """The lanes of a page, gzipped JSON in base64.

    Args:
        traces: one per lane, of the same prompts.
        live: whether the run was made just now, on the person's request.
        link: the query string of the address that makes the same run again.
    """
    first = traces[0]
    origin = "live" if live else "recorded"
    content = {
        "live": origin,
        "link": link,
        "origin": f"{first.pair} · {origin} · {first.device} · {first.dtype}",
        "phases": PHASES,
        "stories": {phase: story(phase, first.settings["draft_tokens"]) for phase in PHASES},
        "lanes": [_lane(trace) for trace in traces],
    }
    packed = json.dumps(content, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(packed, compresslevel=3, mtime=0)).decode()


def _lane(trace: Trace) -> dict[str, Any]:
    numbers = range(len(trace.frames))
    return {
        **trace.content(),
        "roles": ROLES,
        "slot_states": SLOT_STATES,
        "invariants": INVARIANTS,
        "error_bound": {
            "target": ERROR_BOUNDS[trace.dtype],
            "draft": ERROR_BOUNDS[trace.draft_dtype],
        },
        "hidden": trace.special_ids,
        "sentences": [sentence(trace, number) for number in numbers],
        "causes": [cause(trace, number) for number in numbers],
        "figures": {name: json.loads(view(trace).to_json()) for name, view in VIEWS.items()},
    }
