#!/usr/bin/env bash
# The step of action.yml that checks: annotations for people, and SARIF where a file is named.
set -euo pipefail

# The lines of an input, as an array; empty ones do not count.
lines() {
  local line
  found=()
  while IFS= read -r line; do
    line=${line%$'\r'}
    [ -z "${line//[[:space:]]/}" ] || found+=("$line")
  done <<< "$1"
}

arguments=()
lines "${INPUT_CRDS:-}"
for path in ${found[@]+"${found[@]}"}; do arguments+=(--crds "$path"); done
[ -z "${INPUT_KUBERNETES_VERSION:-}" ] || arguments+=(--kubernetes-version "$INPUT_KUBERNETES_VERSION")
case ${INPUT_STRICT:-false} in
  true) arguments+=(--strict) ;;
  false) ;;
  *) echo '::error::strict is true or false'; exit 2 ;;
esac
lines "${INPUT_ARGS:-}"
arguments+=(${found[@]+"${found[@]}"})
lines "${INPUT_PATHS:-}"
[ ${#found[@]} -gt 0 ] || { echo '::error::paths is empty'; exit 2; }
arguments+=(-- "${found[@]}")

status=0
if [ -n "${INPUT_SARIF_FILE:-}" ]; then
  # What it says of its input is said by the run below.
  kubectl-vap check --output sarif "${arguments[@]}" > "$INPUT_SARIF_FILE" 2>/dev/null || status=$?
  # Neither 0, nor 1, nor 2: there is no SARIF.
  [ "$status" -le 2 ] || { echo "::error::kubectl-vap ended with $status"; exit "$status"; }
fi
status=0
kubectl-vap check --output github "${arguments[@]}" || status=$?
[ -z "${GITHUB_OUTPUT:-}" ] || echo "exit-status=$status" >> "$GITHUB_OUTPUT"
exit "$status"
