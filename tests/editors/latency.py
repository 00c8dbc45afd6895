"""Measures the language server: the time from a change to its diagnostics, and of each request.

Usage: latency.py PROGRAM DIRECTORY. Opens policies of the directory one after another, types in an expression of each,
and prints percentiles in milliseconds, and the memory of the server.
"""

import os
import sys
import time
from collections import defaultdict

from client import Server

# The number of files that are opened, and of changes of each.
FILES, CHANGES = 40, 8


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
