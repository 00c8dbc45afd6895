"""A client of the language server `kubectl-vap lsp`."""

import json
import queue
import subprocess
import threading


class Server:
    def __init__(self, program, root):
        self.process = subprocess.Popen([program, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.messages, self.pending, self.last_id = queue.Queue(), [], 0
        threading.Thread(target=self.read, daemon=True).start()
        folders = [{"uri": "file://" + root, "name": "policies"}]
        self.request("initialize", {"processId": None, "workspaceFolders": folders, "capabilities": {}})
        self.notify("initialized", {})

    def read(self):
        while header := self.process.stdout.readline():
            length = int(header.split(b":")[1])
            self.process.stdout.readline()
            self.messages.put(json.loads(self.process.stdout.read(length)))

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def request(self, method, params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        response = self.wait(lambda message: message.get("id") == self.last_id)
        if "error" in response:
            raise SystemExit(f"{method}: {response['error']}")
        return response["result"]

    def wait(self, is_expected):
        for n, message in enumerate(self.pending):
            if is_expected(message):
                return self.pending.pop(n)
        while True:
            message = self.messages.get(timeout=120)
            if is_expected(message):
                return message
            self.pending.append(message)

    def diagnostics(self, uri, version):
        self.wait(
            lambda message: message.get("method") == "textDocument/publishDiagnostics"
            and message["params"]["uri"] == uri
            and message["params"].get("version") == version
        )
