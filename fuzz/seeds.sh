#!/usr/bin/env bash
# Writes the seeds of the fuzz target $1 below the directory $2: expressions and documents of the tests' case files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$1
seeds=$2
mkdir -p "$seeds"

# Writes each expression of the case files to its own file.
expressions() {
  find tests/cases -name '*.md' | sort | xargs awk -v directory="$seeds" '
    /^```/ { inside = !inside && $0 ~ /^```cel( |$)/; n++; next }
    inside && /^[ \t]*$/ { n++; next }
    inside && !/^\/\/ / { print > (directory "/case-" n); close(directory "/case-" n) }'
}

case $target in
  parse | peer | check | eval) expressions ;;
  # The input is a sequence of choices without structure; the fuzzer finds more by itself.
  typed) printf "\001\002\003\004" > "$seeds/any" ;;
  # Seeds of the generator of hostile objects, one per family, and expressions as longer inputs.
  retained)
    for n in 000 001 002 003 004 005 006 007 010 011 012 013 014 015 016 017; do
      printf '%b\001' "\\$n" > "$seeds/family-$n"
    done
    expressions
    ;;
  # The first byte is the chunk size; the rest is a watch, a page of a list, or an object.
  wire)
    # The loop reads these variables by their names.
    # shellcheck disable=SC2034
    wire_policy='{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"a","uid":"u","generation":2,"resourceVersion":"7","labels":{"a":"b"},"managedFields":[{"manager":"m","subresource":"status","fieldsV1":{"f:spec":{}}}]},"spec":{"failurePolicy":"Fail","variables":[{"name":"v","expression":"1"}],"validations":[{"expression":"true"}]},"status":{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
    # shellcheck disable=SC2034
    wire_probe='{"apiVersion":"vap-status.dev/v1alpha1","kind":"PolicyProbe","metadata":{"name":"p","generation":1,"resourceVersion":"8"},"spec":{"policyName":"a","bindings":"Implied","cases":[{"name":"c","request":{"object":{"a":[{"b":0},null]}},"expect":{"decision":"Allow"}}]},"status":{"summary":"1/1","cases":[{"name":"c","outcome":"Passed"}]}}'
    for name in policy probe; do
      object=wire_$name
      object=${!object}
      printf '\007%s' "$object" > "$seeds/$name"
      printf '\377{"metadata":{"resourceVersion":"9","continue":"c"},"items":[%s,7,%s]}' "$object" "$object" > "$seeds/$name-page"
      {
        printf '\037'
        for type in ADDED MODIFIED DELETED; do printf '{"type":"%s","object":%s}\n' "$type" "$object"; done
        printf '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
        printf '{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}\n'
      } > "$seeds/$name-watch"
      # This input is longer than 4 KiB, the default maximum of a fuzzer.
      { printf '\377'; for _ in $(seq 40); do printf '{"type":"ADDED","object":%s}\n' "$object"; done; } > "$seeds/$name-long"
    done
    ;;
  manifest | admit)
    for file in tests/cli_check/*.yaml tests/cli_test/*.yaml tests/cli_test/files/* config/samples/*.yaml; do
      cp "$file" "$seeds/$(basename "$(dirname "$file")")-$(basename "$file")"
    done
    # A policy with its probe is one input.
    cat config/samples/sound.yaml config/samples/sound_probe.yaml > "$seeds/probe.yaml"
    ;;
  regex)
    grep -rhoE "(matches|find|findAll)\('[^']*'" tests/cases crates/regexp/src | sort -u | sed -E "s/^[a-zA-Z]+\('(.*)'$/\1/" \
      | while IFS= read -r pattern; do
          printf '%s\nabc-12.3 é\n' "$pattern" > "$seeds/$(printf %s "$pattern" | cksum | cut -d' ' -f1)"
        done
    grep -oE 'check(_valid|_error)?\("[^"]+"' crates/regexp/src/*.rs | sed -E 's/^[^"]*"(.*)"$/\1/; s/\\\\/\\/g' | sort -u \
      | while IFS= read -r pattern; do
          printf '%s\naabbab\n' "$pattern" > "$seeds/$(printf %s "$pattern" | cksum | cut -d' ' -f1)"
        done
    ;;
  schema)
    printf '%s' '{"openapi":"3.0.0","components":{"schemas":{"a":{"type":"object","properties":{"b":{"$ref":"#/components/schemas/a"},"c":{"type":"array","items":{"type":"string","enum":["x"],"maxLength":3}},"d":{"x-kubernetes-int-or-string":true}},"x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"A"}]}}}}' > "$seeds/document.json"
    printf '%s' '{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.g"},"spec":{"group":"g","scope":"Namespaced","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","additionalProperties":{"type":"integer","format":"int32"},"x-kubernetes-preserve-unknown-fields":true}}}}}]}}' > "$seeds/crd.json"
    ;;
  custom_resource)
    printf '%s' '{"definition":{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.g"},"spec":{"group":"g","scope":"Namespaced","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.n >= oldSelf.n","messageExpression":"string(self.n)"}],"properties":{"n":{"type":"integer","minimum":1,"default":2},"log":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","pattern":"^[a-z]+$"}},"parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}}}}}}]}},"object":{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a"},"spec":{"n":3,"log":["a"],"parts":[{"name":"b"}]}},"before":{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a"},"spec":{"n":2}},"applied":{"spec":{"log":["c"],"parts":[{"name":"d"}]}},"patch":[{"op":"add","path":"/spec/log/-","value":"e"},{"op":"test","path":"/spec/n","value":3},{"op":"copy","from":"/metadata/name","path":"/spec/parts/0/name"},{"op":"move","from":"/spec/log","path":"/spec/list"},{"op":"remove","path":"/spec/list/0"}]}' > "$seeds/all.json"
    ;;
  *) echo "no seeds for the target $target" >&2; exit 1 ;;
esac
