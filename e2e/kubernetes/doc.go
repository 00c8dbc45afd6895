// Package kubernetes runs only Kubernetes' own end-to-end tests of the type checking of ValidatingAdmissionPolicies:
// e2e_test.go links the tests of the API machinery with their framework, and ginkgo's flags select among them.
package kubernetes
