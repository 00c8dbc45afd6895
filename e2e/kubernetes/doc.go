// Package kubernetes runs Kubernetes' own end-to-end tests of the type checking of ValidatingAdmissionPolicies. It
// links the tests of the API machinery with their framework, and ginkgo's flags select which of them run.
package kubernetes
