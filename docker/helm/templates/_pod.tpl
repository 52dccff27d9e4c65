{{/* A pod of the image. Call it with a dict: root, args, and as needed mounts, volumes, resources, ports, probe. */}}
{{- define "tidegate.pod" -}}
metadata:
  labels: {app: {{ .root.Release.Name }}, part: {{ .part }}}
  annotations:
    # The pods start again when a pipeline file changes.
    pipelines: {{ toYaml .root.Values.pipelines | sha256sum }}
spec:
  securityContext: {runAsUser: 50000, runAsGroup: 50000, fsGroup: 50000, runAsNonRoot: true}
  terminationGracePeriodSeconds: 120
  {{- with .restart }}
  restartPolicy: {{ . }}
  {{- end }}
  containers:
    - name: {{ .part }}
      image: {{ .root.Values.image }}
      imagePullPolicy: {{ .root.Values.pullPolicy }}
      args: {{ toJson .args }}
      envFrom: [{secretRef: {name: {{ .root.Values.secret }}}}]
      env:
        - {name: AIRFLOW__CORE__EXECUTOR, value: CeleryExecutor}
        - {name: AIRFLOW__CORE__EXECUTION_API_SERVER_URL, value: "http://{{ .root.Release.Name }}-api-server:8080/execution/"}
        - {name: AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS, value: "admin:admin"}
        - {name: AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE, value: /tmp/passwords.json}
        - {name: AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT, value: "60"}
        # The API server reads a task's log from the worker's pod, which has no name in DNS.
        - {name: AIRFLOW__CORE__HOSTNAME_CALLABLE, value: airflow.utils.net.get_host_ip_address}
        {{- range $name, $value := .root.Values.env }}
        - {name: {{ $name }}, value: {{ $value | quote }}}
        {{- end }}
      {{- with .port }}
      ports: [{name: http, containerPort: {{ . }}}]
      {{- end }}
      {{- with .path }}
      readinessProbe: {httpGet: {path: {{ . }}, port: http}, periodSeconds: 10}
      {{- end }}
      resources: {{ toJson .resources }}
      volumeMounts:
        - {name: pipelines, mountPath: /pipelines, readOnly: true}
        {{- if eq .part "capture" }}
        - {name: value-log, mountPath: /value_log}
        {{- end }}
  volumes:
    - {name: pipelines, configMap: {name: {{ .root.Release.Name }}-pipelines}}
{{- end }}
