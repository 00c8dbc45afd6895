# The recipes of `./dev`, for those who have `just`. `./dev` is where they are written; a test holds
# the two lists equal.

# list the recipes
default:
    @./dev list

# format all Rust code
fmt *args:
    @./dev fmt {{args}}

# formatting and clippy, warnings as errors
lint *args:
    @./dev lint {{args}}

# unit and case tests; no cluster
test *args:
    @./dev test {{args}}

# the tests to run after each change: `fast [FILTER]`; without programs to start, floods of input and long runs
fast *args:
    @./dev fast {{args}}

# a long run of what holds of every expression; `VAP_PROPERTY_SEED` sets the seed
properties *args:
    @./dev properties {{args}}

# the crate's documentation, warnings as errors
doc *args:
    @./dev doc {{args}}

# the documentation site, from docs/ to target/book
book *args:
    @./dev book {{args}}

# licences, duplicates and sources of the dependencies; advisories only warn
deny *args:
    @./dev deny {{args}}

# `fuzz [TARGET] [SECONDS]`: one target or all, a minute each; `--check` compiles them on stable
fuzz *args:
    @./dev fuzz {{args}}

# whether tests notice random changes of the code: `mutants [PATH] [--sample N] [--seed S]`
mutants *args:
    @./dev mutants {{args}}

# the CRD in crds/, from the Rust types
crds *args:
    @./dev crds {{args}}

# the alert rules, by promtool
alerts *args:
    @./dev alerts {{args}}

# health checks of Flux, Helm and Argo CD on the statuses that the controller writes
waiters *args:
    @./dev waiters {{args}}

# the parts of the chart and of config/ that are made of others, and the chart's tests by helm and kustomize; `--check` only compares
charts *args:
    @./dev charts {{args}}

# build the Go program that holds the upstream type checker
oracle *args:
    @./dev oracle {{args}}

# remake the table of defaults by upstream's own functions (some minutes); `--check` only compares
defaults *args:
    @./dev defaults {{args}}

# remake the built-in schemas from Kubernetes' OpenAPI documents; `--check` only compares
schemas *args:
    @./dev schemas {{args}}

# share of generated policies, schemas, expressions and requests on which our answers equal upstream's
parity *args:
    @./dev parity {{args}}

# whether texts made from a seed are read as kubectl reads them: `parity-yaml [--cases N] [--seed S] [PATH...]`
parity-yaml *args:
    @./dev parity-yaml {{args}}

# merges and patches with upstream's answers, which the tests hold without Go
record-mutations *args:
    @./dev record-mutations {{args}}

# requests for custom resources with upstream's answers, which the tests hold without Go
record-custom-resources *args:
    @./dev record-custom-resources {{args}}

# the validations that upstream's own tests of validation rules ask for, with upstream's answers: `record-rules FILE`
record-rules *args:
    @./dev record-rules {{args}}

# parity and tests on the corpus of real policies, and on the cases of generators outside, that `VAP_CORPUS_DIR` and `VAP_CASES_DIR` name
corpus *args:
    @./dev corpus {{args}}

# suites and decisions of others before an API server, that `VAP_SUITES_DIR` and `VAP_DECISIONS` name
suites *args:
    @./dev suites {{args}}

# tests on a real API server; builds the control plane when it is missing (8 minutes, once)
e2e *args:
    @./dev e2e {{args}}

# Kubernetes' own tests of type checking, with our controller in the place of its own
k8s-e2e *args:
    @./dev k8s-e2e {{args}}

# the tests of the language's specification; prints the counts
conformance *args:
    @./dev conformance {{args}}

# objects with mistakes on a real API server, beside the check: `refusals [N] [SEED]`
refusals *args:
    @./dev refusals {{args}}

# hostile objects from a seed: the controller under its memory limit, and the commands on files: `hostile [N] [SEED]`
hostile *args:
    @./dev hostile {{args}}

# definitions, custom resources and mutating policies on a real API server, with those of VAP_CORPUS_DIR if it is set: `custom-resources [N] [SEED]`
custom-resources *args:
    @./dev custom-resources {{args}}

# random changes under faults, beside a model: `soak [--minutes N] [--seed N] [--faults all|none|each|pairs|LIST] [--skip N]`
soak *args:
    @./dev soak {{args}}

# a real control plane, sample policies, the controller, the table, a live change
demo *args:
    @./dev demo {{args}}

# speed beside upstream, and memory, in pairs from one run
bench *args:
    @./dev bench {{args}}

# the controller against the current kubeconfig
run *args:
    @./dev run {{args}}

# the container image, by docker or podman; `--check` only compiles what it would copy
image *args:
    @./dev image {{args}}

# the plugin for a platform, in target/archives: `archive [TARGET]`
archive *args:
    @./dev archive {{args}}

# the manifest for krew, of the archives in target/archives: `krew URL`
krew *args:
    @./dev krew {{args}}

# all that must pass; the corpus of real policies too where `VAP_CORPUS_DIR` names it
ci *args:
    @./dev ci {{args}}
