// The official JSON Schema of SARIF 2.1.0, which gosec has among its test data: its licence is not one of this project's,
// so that it is read from there.
module vap-status-controller.local/sarif

go 1.26.0

require github.com/securego/gosec/v2 v2.30.0
