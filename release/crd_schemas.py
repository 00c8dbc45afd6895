"""Writes the JSON Schemas of CustomResourceDefinitions, for editors and validators.

usage: crd_schemas.py CRDS.yaml FOLDER

A file is named KIND_VERSION.json, in lower case, as validators such as kubeconform look it up.
"""

import json
import os
import sys

import yaml


def strict(schema):
    """Returns a schema that rejects unknown fields, as the API server does with strict validation."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {
        key: {name: strict(value) for name, value in item.items()} if key == "properties" else strict(item)
        for key, item in schema.items()
        if not key.startswith("x-kubernetes-")
    }
    if schema.get("x-kubernetes-int-or-string"):
        result["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if (
        schema.get("type") == "object"
        and "properties" in schema
        and "additionalProperties" not in schema
        and not schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        result["additionalProperties"] = False
    if schema.pop("nullable", False):
        result.pop("nullable")
        result = {"anyOf": [result, {"type": "null"}]}
    return result


def main(path, folder):
    os.makedirs(folder, exist_ok=True)
    with open(path, encoding="utf-8") as file:
        definitions = [item for item in yaml.safe_load_all(file) if item]
    for definition in definitions:
        kind = definition["spec"]["names"]["kind"]
        group = definition["spec"]["group"]
        for version in definition["spec"]["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            properties = schema["properties"]
            properties["apiVersion"] = {"const": f"{group}/{version['name']}"}
            properties["kind"] = {"const": kind}
            properties["metadata"] = {"type": "object"}
            schema["$schema"] = "http://json-schema.org/draft-07/schema#"
            schema["required"] = sorted({"apiVersion", "kind", "metadata", *schema.get("required", [])})
            name = f"{kind}_{version['name']}.json".lower()
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(schema, file, indent=2, sort_keys=True)
                file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
