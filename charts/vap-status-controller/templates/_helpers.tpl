{{/* The name of all objects. */}}
{{- define "vap.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels of all objects. */}}
{{- define "vap.labels" -}}
app.kubernetes.io/name: vap-status-controller
app.kubernetes.io/part-of: vap-status-controller
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The selector of the controller's pods. It omits the release: two releases would write the same statuses, so a cluster has only one. */}}
{{- define "vap.selector" -}}
app.kubernetes.io/name: vap-status-controller
{{- end -}}

{{- define "vap.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The security contexts of a pod and a container that the restricted pod security standard requires. */}}
{{- define "vap.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "vap.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
  - ALL
{{- end -}}

{{/* The subject of all bindings. */}}
{{- define "vap.subjects" -}}
- kind: ServiceAccount
  name: {{ include "vap.fullname" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
