#!/usr/bin/env bash
# Builds all fuzz targets with their seeds and options into $OUT.
set -euo pipefail
cd "$SRC/vap-status-controller"

# rust-toolchain.toml names a stable compiler; fuzzing needs the nightly one of the image.
RUSTUP_TOOLCHAIN=$(rustup default | cut -d ' ' -f 1)
export RUSTUP_TOOLCHAIN

cargo fuzz build -O
for source in fuzz/fuzz_targets/*.rs; do
  target=$(basename "$source" .rs)
  cp "fuzz/target/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
  seeds=$(mktemp -d)
  fuzz/seeds.sh "$target" "$seeds"
  (cd "$seeds" && find . -type f | zip -q -@ "$OUT/${target}_seed_corpus.zip")
  rm -r "$seeds"
  # The same options as in `./dev fuzz`.
  printf '[libfuzzer]\nmax_len = 65536\ntimeout = 60\n' > "$OUT/$target.options"
done
