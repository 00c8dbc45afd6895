//go:build k130

package main

import utilruntime "k8s.io/apimachinery/pkg/util/runtime"

// collectHandledErrors makes upstream call `collect` with each logged error. The messages are empty.
func collectHandledErrors(collect func(err error, msg string)) {
	utilruntime.ErrorHandlers = []func(error){func(err error) { collect(err, "") }}
}

// formatName returns false, because there are no formats.
func formatName(any) (string, bool) { return "", false }
