//go:build k137

package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// evalCompatibility is the Kubernetes version of the "new" environment's libraries.
var evalCompatibility = version.MajorMinor(1, 37)

// requestAuthorizer is the authorizer of validators. It supports no conditions.
type requestAuthorizer = authorizer.UnconditionalAuthorizer

// versionedObject returns an object for VersionedAttributes.
func versionedObject(object runtime.Object) admission.LazyObject {
	return admission.NewLazyObject(object)
}
