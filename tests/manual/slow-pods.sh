cat >/etc/podstead/manifests/web.yaml <<'POD'
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - {name: app, image: localhost/busybox:1, command: [sleep, '1000000']}
POD
until_true 'podstead get pods web | grep -q Running'
