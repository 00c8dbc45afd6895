//go:build !k130

package main

import (
	"context"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// collectHandledErrors makes upstream call `collect` with each logged error and its message.
func collectHandledErrors(collect func(err error, msg string)) {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, msg string, _ ...interface{}) { collect(err, msg) },
	}
}

// formatName returns the name of a format, the value of format.named().
func formatName(value any) (string, bool) {
	format, ok := value.(apiservercel.Format)
	return format.Name, ok
}
