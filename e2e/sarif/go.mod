// The official JSON Schema of SARIF 2.1.0, from the test data of gosec. It is not copied, since its license is not among
// those of this project.
module vap-status-controller.local/sarif

go 1.26.0

require github.com/securego/gosec/v2 v2.30.0
