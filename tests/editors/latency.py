"""Measures the language server: the time from a change to its diagnostics, and of each request.

Usage: latency.py PROGRAM DIRECTORY. Opens policies of the directory one after another, types in an expression of each,
and prints percentiles in milliseconds, and the memory of the server.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import defaultdict

# The number of files that are opened, and of changes of each.
FILES, CHANGES = 40, 8


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


def main():
    program, root = sys.argv[1], os.path.abspath(sys.argv[2])
    files = []
    for directory, _, names in os.walk(root):
        for name in sorted(names):
            path = os.path.join(directory, name)
            if name.endswith((".yaml", ".yml")):
                text = open(path, errors="replace").read()
                if "kind: ValidatingAdmissionPolicy\n" in text and "expression: object." in text:
                    files.append((path, text))
    files = files[:: max(1, len(files) // FILES)]
    times = defaultdict(list)

    def timed(name, work):
        start = time.perf_counter()
        work()
        times[name].append(1000 * (time.perf_counter() - start))

    start = time.perf_counter()
    server = Server(program, root)
    times["initialize"].append(1000 * (time.perf_counter() - start))
    for path, text in files:
        uri = "file://" + path.replace("%", "%25").replace("+", "%2B").replace(" ", "%20")
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        timed(
            "open",
            lambda: (server.notify("textDocument/didOpen", {"textDocument": document}), server.diagnostics(uri, 1)),
        )
        offset = text.index("expression: object.") + len("expression: object.")
        line = text.count("\n", 0, offset)
        character = offset - text.rfind("\n", 0, offset) - 1
        for version in range(2, 2 + CHANGES):
            at = {"line": line, "character": character}
            changes = [{"range": {"start": at, "end": at}, "text": "a"}]
            params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
            timed(
                "change to diagnostics",
                lambda: (server.notify("textDocument/didChange", params), server.diagnostics(uri, version)),
            )
            here = {"textDocument": {"uri": uri}, "position": at}
            everything = {"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}}
            for method, more in [
                ("completion", {}),
                ("hover", {}),
                ("signatureHelp", {}),
                ("definition", {}),
                ("codeAction", {"range": everything, "context": {"diagnostics": []}}),
                ("documentSymbol", {}),
                ("semanticTokens/full", {}),
            ]:
                timed(method, lambda: server.request("textDocument/" + method, {**here, **more}))
        server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    print(f"{len(files)} files of {root}")
    print(f"{'milliseconds':24}{'p50':>8}{'p99':>8}{'max':>8}{'n':>6}")
    for name, values in times.items():
        values.sort()
        p50, p99 = (values[int(share * (len(values) - 1))] for share in (0.5, 0.99))
        print(f"{name:24}{p50:8.1f}{p99:8.1f}{values[-1]:8.1f}{len(values):6}")
    status = f"/proc/{server.process.pid}/status"
    if os.path.exists(status):
        print("memory:", open(status).read().split("VmHWM:")[1].split("\n")[0].strip(), "at most")
    server.request("shutdown", None)
    server.notify("exit", None)
    sys.exit(server.process.wait())


main()
