"""A hub that takes uploads, as huggingface_hub makes them."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class HubServer:
    """Keeps the files of commits, by repository.

    Attributes:
        url: Address.
        token: The only one that may write.
        repositories: Whether each is private.
        files: Contents by repository and path.
    """

    def __init__(self, token):
        self.token, self.repositories, self.files, self._large = token, {}, {}, {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def post(self, path, body):
        """Return the reply to a request; None if there is no such page."""
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization', 'me')}/{asked['name']}"
            self.repositories[name] = asked.get("visibility") == "private" or asked.get("private")
            return {"url": f"{self.url}/{name}"}
        if path == "/api/validate-yaml":
            return {"errors": [], "warnings": []}
        if path.endswith("/preupload/main"):
            names = [file["path"] for file in json.loads(body)["files"]]
            kinds = {True: "lfs", False: "regular"}
            return {
                "files": [
                    {
                        "path": name,
                        "uploadMode": kinds[name.endswith(".safetensors")],
                        "shouldIgnore": False,
                    }
                    for name in names
                ]
            }
        if path.endswith(".git/info/lfs/objects/batch"):
            objects = json.loads(body)["objects"]
            for one in objects:
                one["actions"] = {"upload": {"href": f"{self.url}/large/{one['oid']}"}}
            return {"transfer": "basic", "objects": objects}
        if path.endswith("/commit/main"):
            name = "/".join(path.split("/")[3:5])
            for line in filter(None, body.split(b"\n")):
                self._commit(name, json.loads(line))
            done = {"commitUrl": f"{self.url}/{name}/commit/1", "commitOid": "1"}
            return {"success": True, "pullRequestUrl": None, **done}
        return None

    def put(self, path, body):
        self._large[path.rpartition("/")[2]] = body

    def _commit(self, name, line):
        value = line["value"]
        if line["key"] == "file":
            self.files[name, value["path"]] = base64.b64decode(value["content"])
        if line["key"] == "lfsFile":
            self.files[name, value["path"]] = self._large[value["oid"]]


def _handler(hub):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self._body()
            allowed = self.headers["Authorization"] == f"Bearer {hub.token}"
            reply = hub.post(self.path.partition("?")[0], body) if allowed else None
            self._answer(200 if reply is not None else 404 if allowed else 401, reply)

        def do_PUT(self):
            hub.put(self.path, self._body())
            self._answer(200, {})

        def do_GET(self):
            self._answer(404, {})

        def _body(self):
            if self.headers["Transfer-Encoding"] != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def _answer(self, status, reply):
            content = json.dumps(reply or {"error": "no"}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    return Handler
