"""A small inference service: POST {"rows": [[…], …]} gives {"scores": […]}; GET / says which device runs."""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

FEATURES = 16
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
MODEL = torch.nn.Sequential(
    torch.nn.Linear(FEATURES, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)
).eval().to(DEVICE)  # fmt: skip


class Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer({"torch": torch.__version__, "device": DEVICE})

    def do_POST(self) -> None:
        try:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            rows = torch.tensor(request["rows"], dtype=torch.float32, device=DEVICE)
            with torch.inference_mode():
                scores = MODEL(rows).squeeze(1).tolist()
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            self.answer({"error": str(error)}, HTTPStatus.BAD_REQUEST)
            return
        self.answer({"scores": scores})

    def answer(self, value: object, status: HTTPStatus = HTTPStatus.OK) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer(("", 8000), Service).serve_forever()
