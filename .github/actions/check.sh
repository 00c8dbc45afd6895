#!/usr/bin/env bash
# The check step of action.yml: prints annotations, and writes SARIF if a file is given.
set -euo pipefail

# Splits an input into its nonempty lines, and stores them in the array `found`.
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
  *) echo '::error::strict must be true or false'; exit 2 ;;
esac
lines "${INPUT_ARGS:-}"
arguments+=(${found[@]+"${found[@]}"})
lines "${INPUT_PATHS:-}"
[ ${#found[@]} -gt 0 ] || { echo '::error::paths is empty'; exit 2; }
arguments+=(-- "${found[@]}")

status=0
if [ -n "${INPUT_SARIF_FILE:-}" ]; then
  # The messages on standard error are discarded, since the run below prints them.
  kubectl-vap check --output sarif "${arguments[@]}" > "$INPUT_SARIF_FILE" 2>/dev/null || status=$?
  # The command writes SARIF only if it exits with 0, 1 or 2.
  [ "$status" -le 2 ] || { echo "::error::kubectl-vap exited with $status"; exit "$status"; }
fi
status=0
kubectl-vap check --output github "${arguments[@]}" || status=$?
[ -z "${GITHUB_OUTPUT:-}" ] || echo "exit-status=$status" >> "$GITHUB_OUTPUT"
exit "$status"
