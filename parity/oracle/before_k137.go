//go:build !k137

package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// requestAuthorizer is the authorizer of validators.
type requestAuthorizer = authorizer.Authorizer

// versionedObject returns an object for VersionedAttributes.
func versionedObject(object runtime.Object) runtime.Object { return object }
