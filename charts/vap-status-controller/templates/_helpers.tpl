{{/* The value of the label app.kubernetes.io/name. */}}
{{- define "vap.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of all objects. */}}
{{- define "vap.fullname" -}}
{{- $name := include "vap.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the controller's pods. A selector cannot be changed later. */}}
{{- define "vap.selector" -}}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/name: {{ include "vap.name" . | quote }}
{{- end -}}

{{/* The labels of the controller's pods, without podLabels. */}}
{{- define "vap.podLabels" -}}
{{- $labels := dict "app.kubernetes.io/component" "controller"
  "app.kubernetes.io/part-of" "vap-status-controller"
  "app.kubernetes.io/version" .Chart.AppVersion -}}
{{- toYaml (mustMergeOverwrite $labels .Values.commonLabels (include "vap.selector" . | fromYaml)) -}}
{{- end -}}

{{/* The labels of all objects. */}}
{{- define "vap.labels" -}}
{{- $chart := printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" -}}
{{- $labels := dict "app.kubernetes.io/managed-by" .Release.Service "helm.sh/chart" $chart -}}
{{- toYaml (mustMergeOverwrite (include "vap.podLabels" . | fromYaml) $labels) -}}
{{- end -}}

{{/* The labels of the pod of a hook, which the controller's selector must not match. Argument: (list $ COMPONENT). */}}
{{- define "vap.hookLabels" -}}
{{- $name := printf "%s-%s" (include "vap.name" (first .)) (last .) -}}
{{- $labels := dict "app.kubernetes.io/name" $name "app.kubernetes.io/component" (last .) -}}
{{- toYaml (mustMergeOverwrite (include "vap.podLabels" (first .) | fromYaml) $labels) -}}
{{- end -}}

{{- define "vap.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "vap.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "vap.image" -}}
{{- $repository := join "/" (compact (list .Values.image.registry .Values.image.repository)) -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The fields of a pod that do not depend on its containers. */}}
{{- define "vap.pod" -}}
enableServiceLinks: false
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- tpl (toYaml .) $ | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The fields of a container with the controller's image. */}}
{{- define "vap.container" -}}
image: {{ include "vap.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Egress rules: DNS, and the endpoints of the API server. OpenShift's DNS pods listen on port 5353. */}}
{{- define "vap.dnsEgress" -}}
- ports:
  - port: 53
    protocol: UDP
  - port: 53
    protocol: TCP
  - port: 5353
    protocol: UDP
  - port: 5353
    protocol: TCP
{{- end -}}

{{- define "vap.apiServerEgress" -}}
- ports:
  {{- range .Values.networkPolicy.apiServerPorts }}
  - port: {{ . }}
    protocol: TCP
  {{- end }}
  {{- with .Values.networkPolicy.apiServerTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* The subject of all bindings. */}}
{{- define "vap.subjects" -}}
- kind: ServiceAccount
  name: {{ include "vap.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* The address of a runbook in the alerts and the dashboard. Both have the form URL/runbooks/NAME.md by default, and BASE/NAME with a base. Argument: (list $ TEXT). */}}
{{- define "vap.runbooks" -}}
{{- $base := (first .).Values.metrics.runbookBaseUrl -}}
{{- if $base -}}
{{- regexReplaceAll "https://[^\\s\"]*/runbooks/([A-Za-z]+|\\$\\{__value\\.raw\\})\\.md" (last .) (printf "%s/${1}" (trimSuffix "/" $base)) -}}
{{- else -}}
{{- last . -}}
{{- end -}}
{{- end -}}

{{/* The rules of paramsRoles. */}}
{{- define "vap.paramsRules" -}}
{{- range .Values.paramsRoles }}
- apiGroups: [{{ .apiGroup | quote }}]
  resources: {{ toJson .resources }}
  verbs: [get, list, watch]
{{- end }}
{{- end -}}
