"""Sends broken, reordered and huge messages to the language server.

Usage: fuzz.py PROGRAM [--seed N] [--sessions N] [--batches N]

After each batch of messages, the server must answer each valid request once, answer a request for a new document
correctly, and use less memory than a limit. At the end, it must stop with the exit status 0. A failure prints the seed,
and writes the messages of the session to a file.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
from pathlib import Path

from client import Server

BATCH = 60
# The limits of a batch, in seconds, and of the server's memory, in MiB.
PATIENCE, MEMORY = 120, 1500
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limit.example.com}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  variables:
  - {name: containers, expression: object.spec.template.spec.containers}
  validations:
  - expression: object.spec.replicas <= 50 && variables.containers.all(c, c.image.startsWith('a/'))
    messageExpression: "'é😀' + string(object.spec.replicas)"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: limit}
spec: {policyName: limit.example.com, validationActions: [Deny]}
"""
METHODS = [
    "codeAction",
    "codeLens",
    "completion",
    "definition",
    "documentSymbol",
    "hover",
    "prepareRename",
    "references",
    "rename",
    "semanticTokens/full",
    "signatureHelp",
]
VALUES = [None, True, -1, 0, 2**31, 2**63, 1.5, "", "x", "\u0000", "file:///none/", "file://%", [], [[]], {}, {"uri": 1}]
PIECES = ["'", '"', "\n", "\r\n", ": ", "- ", "{", "[", "|", ">-\n", "&a ", "*a", "!!binary ", "\ufeff", "\u2028", "😀",
          "\t", "#", "---\n", "(", ")", ".", "?", "&&", "object.", "variables.", "params", "0x", "1e999", "in ", "has("]
FRAMES = [
    b"Content-Length: 5\r\n\r\n{\"a\":",
    b"Content-Length: 2\r\n\r\n\xff\xfe",
    b"Content-Length: -1\r\n\r\n",
    b"Content-Type: y\r\n\r\n",
    b"\r\n\r\n",
    b"garbage\r\n\r\n",
    b"content-length: 2\n\n[]",
]


class Fuzzer:
    def __init__(self, program, seed):
        self.random = random.Random(seed)
        self.root = Path(tempfile.mkdtemp(prefix="vap-fuzz-"))
        (self.root / "p.yaml").write_text(POLICY)
        self.server = Server(program, str(self.root))
        self.versions, self.sent = {}, []
        self.last_id = 1000
        # The longest time of a batch, in seconds.
        self.slowest = 0

    def uri(self):
        names = ["p.yaml", "a.yaml", "b.yaml", "c d.yaml", "é.json", "none.yaml"]
        return f"file://{self.root}/{self.random.choice(names)}".replace(" ", "%20")

    def position(self):
        pick = self.random
        limit = pick.choice([20, 20, 20, 200, 2**31 - 1])
        return {"line": pick.randrange(min(limit, 30)), "character": pick.randrange(limit)}

    def range(self):
        return {"start": self.position(), "end": self.position()}

    def changed(self, text):
        """Returns the text after a few random changes."""
        pick = self.random
        for _ in range(pick.randrange(1, 6)):
            start = pick.randrange(len(text) + 1)
            end = min(len(text), start + pick.choice([0, 0, 1, 5, 40]))
            new = pick.choice([pick.choice(PIECES), text[end : end + pick.randrange(60)], ""])
            text = text[:start] + new + text[end:]
        return text

    def text(self):
        pick = self.random
        huge = [
            lambda: POLICY + "# " + "x" * 2_000_000 + "\n",
            lambda: "a: " + "[" * 50_000,
            lambda: POLICY.replace("object.spec.replicas", "(" * pick.choice([300, 20_000])),
            lambda: POLICY.replace("<= 50", " && true" * 3_000),
            lambda: (POLICY + "---\n") * 60,
        ]
        if pick.random() < 0.03:
            return pick.choice(huge)()
        return self.changed(POLICY)

    def damaged(self, value):
        """Returns a JSON value with another value at a random place."""
        pick = self.random
        if not isinstance(value, (dict, list)) or not value or pick.random() < 0.3:
            return pick.choice(VALUES)
        copy = dict(value) if isinstance(value, dict) else list(value)
        key = pick.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if pick.random() < 0.2:
            del copy[key]
        else:
            copy[key] = self.damaged(value[key])
        return copy

    def request(self):
        method = self.random.choice(METHODS)
        params = {
            "textDocument": {"uri": self.uri()},
            "position": self.position(),
            "range": self.range(),
            "context": {"diagnostics": [], "includeDeclaration": True},
            "newName": self.random.choice(["b", "", "a b", "é", "x" * 300]),
        }
        self.last_id += 1
        return {"id": self.last_id, "method": "textDocument/" + method, "params": params}

    def notification(self):
        pick, uri = self.random, self.uri()
        version = self.versions[uri] = self.versions.get(uri, 0) + pick.choice([1, 1, 1, 0, -3])
        document = {"uri": uri, "version": version, "languageId": "yaml"}
        changes = [{"range": self.range(), "text": pick.choice(PIECES)} for _ in range(pick.randrange(4))]
        if pick.random() < 0.2:
            changes.append({"text": self.text()})
        folder = {"uri": f"file://{self.root}/sub", "name": "sub"}
        if pick.random() < 0.1:
            name = self.root / pick.choice(["p.yaml", "a.yaml", ".vap.yaml", "sub.yaml"])
            name.unlink() if name.exists() and pick.random() < 0.5 else name.write_text(self.text())
        method, params = pick.choice(
            [
                ("textDocument/didOpen", {"textDocument": {**document, "text": self.text()}}),
                ("textDocument/didChange", {"textDocument": document, "contentChanges": changes}),
                ("textDocument/didChange", {"textDocument": document, "contentChanges": changes}),
                ("textDocument/didClose", {"textDocument": document}),
                ("textDocument/didSave", {"textDocument": document}),
                ("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": pick.randrange(5)}]}),
                ("workspace/didChangeWatchedFiles", {"changes": [{"uri": f"file://{self.root}/.vap.yaml", "type": 2}]}),
                ("workspace/didChangeWorkspaceFolders", {"event": {"added": [folder], "removed": []}}),
                ("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [folder]}}),
                ("$/cancelRequest", {"id": self.last_id - pick.randrange(5)}),
                ("initialized", {}),
            ]
        )
        return {"method": method, "params": params}

    def batch(self):
        """Returns messages, and the requests among them that must be answered once."""
        messages, asked = [], set()
        for _ in range(BATCH):
            kind = self.random.random()
            message = self.request() if kind < 0.5 else self.notification()
            if "id" in message:
                asked.add(message["id"])
            if kind < 0.05 or kind > 0.9:
                message["params"] = self.damaged(message["params"])
            messages.append(message)
        self.random.shuffle(messages)
        return messages, asked

    def send(self, message):
        self.sent.append(message)
        self.server.send(message)

    def run(self, n):
        messages, asked = self.batch()
        for message in messages:
            if self.random.random() < 0.05:
                frame = self.random.choice(FRAMES)
                self.sent.append(repr(frame))
                self.server.process.stdin.write(frame)
            self.send(message)
        # A request for a new document gets its result despite all earlier messages.
        uri = f"untitled:canary-{n}"
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": POLICY}
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        position = {"line": 10, "character": 25}
        self.last_id += 1
        params = {"textDocument": {"uri": uri}, "position": position}
        self.send({"id": self.last_id, "method": "textDocument/hover", "params": params})
        start, answers, is_checked = time.monotonic(), {}, False
        while self.last_id not in answers or not is_checked:
            if time.monotonic() - start > PATIENCE:
                raise AssertionError(f"no answer within {PATIENCE} s")
            message = self.server.messages.get(timeout=PATIENCE)
            if message.get("id") is not None and "method" not in message:
                answers.setdefault(message["id"], []).append(message)
            # The documents before it have been checked, too.
            is_checked |= message.get("params", {}).get("uri") == uri
        self.slowest = max(self.slowest, time.monotonic() - start)
        self.send({"method": "textDocument/didClose", "params": {"textDocument": {"uri": uri}}})
        text = json.dumps(answers[self.last_id][0].get("result"))
        assert "object.spec: object" in text, f"wrong result: {answers[self.last_id]}"
        for id in asked:
            of_id = answers.get(id, [])
            assert len(of_id) == 1, f"request {id} has {len(of_id)} answers"
            error = of_id[0].get("error") or {}
            assert error.get("code") != -32603, f"request {id}: {error}"
        status = Path(f"/proc/{self.server.process.pid}/status")
        if status.exists():
            memory = int(status.read_text().split("VmRSS:")[1].split()[0]) // 1024
            assert memory < MEMORY, f"{memory} MiB of memory"

    def end(self):
        self.server.request("shutdown", None)
        self.server.notify("exit", None)
        code = self.server.process.wait(timeout=PATIENCE)
        assert code == 0, f"exit status {code}"
        shutil.rmtree(self.root)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=3)
    parser.add_argument("--batches", type=int, default=10)
    args = parser.parse_args()
    start, slowest = time.monotonic(), 0
    for seed in range(args.seed, args.seed + args.sessions):
        fuzzer = Fuzzer(args.program, seed)
        try:
            for n in range(args.batches):
                fuzzer.run(n)
            fuzzer.end()
            slowest = max(slowest, fuzzer.slowest)
        except Exception as error:
            fuzzer.server.process.kill()
            log = fuzzer.root / "messages.jsonl"
            log.write_text("".join(json.dumps(message) + "\n" for message in fuzzer.sent))
            raise SystemExit(f"seed {seed}, batch {n}: {error or type(error).__name__}; the messages are in {log}") from error
    n = args.sessions * args.batches * BATCH
    print(f"{n} messages in {args.sessions} sessions, {time.monotonic() - start:.0f} s: the server answered correctly")
    print(f"longest time of {BATCH} messages: {slowest:.1f} s")


if __name__ == "__main__":
    main()
