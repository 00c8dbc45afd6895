// Package kubernetes runs Kubernetes' end-to-end tests of the type checking of ValidatingAdmissionPolicies. It links
// all tests of the API machinery. ginkgo's flags select the tests to run.
package kubernetes
