"""A server of OpenAI's completions that echoes prompts with log-probabilities of a real policy."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

from harness.model.packing import Sample, to_batch

NAME = "teacher"


def scored(policy, ids):
    """Return the fields of `logprobs` for a prompt and one token after it."""
    row = Sample(ids[:1], ids[1:], (0.0,) * (len(ids) - 1), 0.0)
    with torch.no_grad():
        logprob, _ = policy.logprobs(to_batch([row], policy.pad_id))
    logprobs = [None, *logprob[0, 1:].tolist(), -0.5]
    texts = [policy.tokenizer.decode([i]) for i in (*ids, ids[0])]
    return {"tokens": texts, "token_logprobs": logprobs, "top_logprobs": None}


@contextmanager
def serving(policy, *faults, max_length=None, key=None):
    """Serve a policy; yield the address and the requests.

    Each fault is the status and body of an answer in place of the next one.
    """
    faults, asked, lock = list(faults), [], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send(200, {"data": [{"id": NAME, "max_model_len": max_length}]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                asked.append(body)
                fault = faults.pop(0) if faults else None
            if key and self.headers["Authorization"] != f"Bearer {key}":
                fault = 401, {"error": {"message": "Incorrect API key provided"}}
            if fault or self.path != "/v1/completions":
                return self.send(*(fault or (404, {"error": {"message": "no such path"}})))
            unknown = [i for i in body["prompt"] if i >= len(policy.tokenizer)]
            if unknown:  # in vLLM's words
                said = f"Token id {unknown[0]} is out of vocabulary"
                return self.send(400, {"error": {"message": said}})
            told = scored(policy, tuple(body["prompt"])) if body["echo"] else None
            return self.send(200, {"choices": [{"text": "", "logprobs": told}]})

        def send(self, status, body):
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_): ...

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}/v1", asked
    finally:
        httpd.shutdown()
        httpd.server_close()
