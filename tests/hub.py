"""A Hub of local folders, served on this machine, that answers as the real one does."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def served_hub(folder: Path, gated: tuple[str, ...] = ()) -> Iterator[tuple[str, list[str]]]:
    """Serve the models `OWNER/NAME` of a folder.

    Args:
        folder: of folders of folders of files.
        gated: ids whose files nobody may have.

    Yields:
        The address, and the paths asked for so far.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            asked.append(path)
            parts = path.strip("/").split("/")
            if parts[0] == "api":
                self._tell(parts[2:])
            else:
                self._give("/".join(parts[:2]), parts[4:])

        do_HEAD = do_GET

        def _tell(self, parts: list[str]) -> None:
            id, what = "/".join(parts[:2]), parts[2] if len(parts) > 2 else ""
            if not (folder / id).is_dir():
                self._answer(404, b"{}", **{"X-Error-Code": "RepoNotFound"})
            elif what == "discussions":
                self._answer(200, json.dumps({"discussions": [], "count": 0, "start": 0}).encode())
            elif what == "revision" and parts[3] not in ("main", COMMIT):
                self._answer(404, b"{}", **{"X-Error-Code": "RevisionNotFound"})
            elif what == "tree":
                self._answer(200, json.dumps([_entry(file) for file in files(id)]).encode())
            else:
                siblings = [{"rfilename": file.name} for file in files(id)]
                told: dict[str, Any] = {"id": id, "sha": COMMIT, "siblings": siblings}
                told |= {"private": False, "tags": [], "downloads": 0, "likes": 0}
                self._answer(200, json.dumps(told).encode())

        def _give(self, id: str, parts: list[str]) -> None:
            file = folder / id / "/".join(parts)
            if id in gated:
                self._answer(401, b"", **{"X-Error-Code": "GatedRepo"})
            elif not file.is_file():
                self._answer(404, b"", **{"X-Error-Code": "EntryNotFound"})
            else:
                content = file.read_bytes()
                tag = hashlib.sha1(content).hexdigest()
                self._answer(200, content, **{"X-Repo-Commit": COMMIT, "ETag": f'"{tag}"'})

        def _answer(self, code: int, content: bytes, **headers: str) -> None:
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    def files(id: str) -> list[Path]:
        return sorted(path for path in (folder / id).iterdir() if path.is_file())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def _entry(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    oid = hashlib.sha1(content).hexdigest()
    return {"type": "file", "path": file.name, "size": len(content), "oid": oid}
