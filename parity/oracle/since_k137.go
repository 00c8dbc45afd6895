//go:build k137

package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// requestAuthorizer is the authorizer of validators. It supports no conditions.
type requestAuthorizer = authorizer.UnconditionalAuthorizer

// versionedObject returns an object for VersionedAttributes.
func versionedObject(object runtime.Object) admission.LazyObject {
	return admission.NewLazyObject(object)
}
