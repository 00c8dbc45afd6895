#!/usr/bin/env python3
"""Prints the queries of the dashboard as recording rules, for promtool to check."""

import json
import pathlib
import sys

import yaml

dashboard = json.loads((pathlib.Path(__file__).parent / "vap-status-controller.json").read_text())
rules = [
    {"record": f"panel:{panel['id']}:{target['refId']}", "expr": target["expr"].replace("$__rate_interval", "2m")}
    for panel in dashboard["panels"]
    for target in panel.get("targets", [])
]
assert rules, "the dashboard has no query"
yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}, sys.stdout)
