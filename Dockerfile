# A static binary in an image that holds nothing else: no shell, no package manager, no other user.
# Build: `./dev image`, or `docker build -t vap-status-controller:0.1.0 .`

FROM rust:1.95.0-bookworm AS build
# ring compiles C and assembly; musl-tools has the compiler for it.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends musl-tools \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# rust-toolchain.toml decides over the image's toolchain, so the target is added under its rule.
COPY rust-toolchain.toml ./
RUN rustup target add "$(uname -m)-unknown-linux-musl"
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY src src
# Cargo requires that the benches, tests and other members that manifests name exist.
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
# The number, not a name, so that Kubernetes can see that it is not root. There is no /etc/passwd.
USER 65532:65532
# Health, and metrics where --metrics-listen puts them.
EXPOSE 8080 8081
ENTRYPOINT ["/vap-status-controller"]
CMD ["run"]
