#!/usr/bin/env bash
# The install step of action.yml: adds kubectl-vap to PATH, from an archive or built from the action's source.
set -euo pipefail

: "${RUNNER_TEMP:?}" "${GITHUB_PATH:?}" "${GITHUB_ACTION_PATH:?}"
bin=$RUNNER_TEMP/kubectl-vap/bin
mkdir -p "$bin"
if [ -n "${INPUT_ARCHIVE_URL:-}" ]; then
  [ -n "${INPUT_ARCHIVE_SHA256:-}" ] || { echo '::error::archive-url needs archive-sha256'; exit 2; }
  archive=$RUNNER_TEMP/kubectl-vap/archive.tar.gz
  curl --fail --silent --show-error --location --retry 3 --output "$archive" "$INPUT_ARCHIVE_URL"
  if command -v sha256sum >/dev/null; then sum=$(sha256sum "$archive"); else sum=$(shasum -a 256 "$archive"); fi
  if [ "${sum%% *}" != "$INPUT_ARCHIVE_SHA256" ]; then
    echo "::error::the SHA-256 of the archive is ${sum%% *}, not archive-sha256"
    exit 2
  fi
  tar -xzf "$archive" -C "$bin"
else
  command -v cargo >/dev/null || { echo '::error::cargo is not installed, so kubectl-vap cannot be built; set archive-url'; exit 2; }
  # The build runs in the action's directory, since rustup and cargo read their configuration from the working directory,
  # and the configuration of the checked repository is for its own programs. Without LTO, the build takes a minute less
  # and a check a quarter longer.
  (
    cd "$GITHUB_ACTION_PATH"
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
      cargo install --quiet --locked --path . --bin kubectl-vap --root "${bin%/bin}"
  )
fi
"$bin/kubectl-vap" --version
echo "$bin" >> "$GITHUB_PATH"
