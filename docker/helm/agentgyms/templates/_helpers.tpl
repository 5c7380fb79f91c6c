{{/* What is served: a map from names to settings, the defaults beneath each. */}}
{{- define "agentgyms.served" -}}
{{- $served := dict -}}
{{- range $name := .Values.serve -}}
  {{- $own := get $.Values.environments $name -}}
  {{- if not $own -}}
    {{- fail (printf "serve: %q is not among environments, which has %s" $name (keys $.Values.environments | sortAlpha | join ", ")) -}}
  {{- end -}}
  {{- $_ := set $served $name (mergeOverwrite (deepCopy $.Values.defaults) (deepCopy $own)) -}}
{{- end -}}
{{- toYaml $served -}}
{{- end -}}

{{/* The name of an environment's objects, given (root, name). The controller adds 11 characters to it in a label. */}}
{{- define "agentgyms.name" -}}
{{- $name := printf "%s-%s" (index . 0).Release.Name (index . 1) -}}
{{- if gt (len $name) 52 -}}
  {{- fail (printf "%q has more than 52 characters: take a shorter name for the release" $name) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* Labels by which an environment's pods are selected, given (root, name). */}}
{{- define "agentgyms.selector" -}}
app.kubernetes.io/name: agentgyms
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* All labels, given (root, name). */}}
{{- define "agentgyms.labels" -}}
{{ include "agentgyms.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end -}}

{{/* An image, given (root, its settings). */}}
{{- define "agentgyms.image" -}}
{{ (index . 1).repository }}:{{ (index . 1).tag | default (index . 0).Chart.AppVersion }}
{{- end -}}

{{/* The claim with the data sets; empty if there is none. */}}
{{- define "agentgyms.claim" -}}
{{- if .Values.data.claim -}}
{{- .Values.data.claim -}}
{{- else if .Values.data.create -}}
{{- .Release.Name }}-data
{{- end -}}
{{- end -}}

{{/* What all pods may do, and what the image's user is. */}}
{{- define "agentgyms.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "agentgyms.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
