"""A web server for tests of downloads: it can cut connections, refuse ranges, and be busy."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTENT = bytes(range(256)) * 4000


class Files(BaseHTTPRequestHandler):
    """Serves `files`; cuts a connection after `cut` bytes as often as `cuts` says."""

    files: dict[str, bytes]
    cut, cuts, status, ranges, redirect = 0, 0, 200, True, False
    requests: list[str | None]

    def do_GET(self):
        type(self).requests.append(self.headers.get("Range"))
        if self.redirect:
            self.send_response(302)
            self.send_header("Location", self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = self.files.get(self.path)
        if content is None or self.status != 200:
            self.send_error(404 if content is None else self.status)
            return
        begin = self._begin(len(content))
        if begin is None:
            return
        body = content[begin:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if type(self).cuts > 0:
            type(self).cuts -= 1
            self.wfile.write(body[: self.cut])
            self.wfile.flush()
            self.connection.close()
        else:
            self.wfile.write(body)

    def _begin(self, total):
        wanted = self.headers.get("Range")
        if not wanted or not self.ranges:
            self.send_response(200)
            return 0
        begin = int(wanted.removeprefix("bytes=").rstrip("-"))
        if begin >= total:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{total}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{total - 1}/{total}")
        return begin

    def log_message(self, *args):
        pass


@contextmanager
def serve():
    """Serve `files` on a socket and yield the handler's class, with its address as `url`."""
    Own = type("Own", (Files,), {"files": {"/file.bin": CONTENT}, "requests": []})
    web = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    thread = threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    Own.url = f"http://127.0.0.1:{web.server_port}"
    yield Own
    web.shutdown()
    web.server_close()
    thread.join()
