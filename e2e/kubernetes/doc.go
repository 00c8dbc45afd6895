// Package kubernetes runs Kubernetes' own end-to-end tests of the type checking of
// ValidatingAdmissionPolicies, and nothing of our own: e2e_test.go links the tests of the API
// machinery with their framework, and the flags of ginkgo choose from them.
package kubernetes
