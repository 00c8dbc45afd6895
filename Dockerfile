# An image with only a static binary: no shell, no package manager, no other users.
# Build: `./dev image`, or `docker build -t vap-status-controller:0.1.0 .`

FROM rust:1.95.0-bookworm AS build
# ring compiles C and assembly, for which musl-tools has the compiler.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends musl-tools \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# rust-toolchain.toml overrides the image's toolchain, so the target is added to the toolchain that it selects.
COPY rust-toolchain.toml ./
RUN rustup target add "$(uname -m)-unknown-linux-musl"
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY src src
# The plugin contains the schemas of its kinds.
COPY crds crds
# Cargo requires the benches, tests and workspace members in the manifests to exist.
COPY benches benches
COPY tests tests
COPY e2e/Cargo.toml e2e/Cargo.toml
COPY parity/Cargo.toml parity/Cargo.toml
RUN mkdir -p e2e/src e2e/tests parity/src parity/tests \
 && touch e2e/src/lib.rs e2e/tests/corpus.rs e2e/tests/external_suites.rs parity/src/lib.rs parity/tests/corpus.rs
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    target="$(uname -m)-unknown-linux-musl" \
 && cargo build --release --locked --package vap-status-controller --bin vap-status-controller --target "$target" \
 && cp "target/$target/release/vap-status-controller" /vap-status-controller

FROM scratch
COPY --from=build /vap-status-controller /vap-status-controller
COPY LICENSE /LICENSE
# The user id is numeric, so that Kubernetes can verify that the user is not root. There is no /etc/passwd.
USER 65532:65532
# Health checks, and metrics on the address of --metrics-listen.
EXPOSE 8080 8081
ENTRYPOINT ["/vap-status-controller"]
CMD ["run"]
