# A registry with the image of the manifests, and the directory of whoever releases.
mkdir /run/registry
cat >/run/registry.yaml <<CONFIG
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: /run/registry}}
http: {addr: '127.0.0.1:5000'}
CONFIG
docker-registry serve /run/registry.yaml >/run/registry.log 2>&1 &
until_true 'curl -s http://registry.lan:5000/v2/'
/run/given/support/make-image.sh app.tar registry.lan:5000/shop/app:1
skopeo copy -q --dest-tls-verify=false oci-archive:app.tar docker://registry.lan:5000/shop/app:1
mkdir /srv/work
cat >/srv/work/web.yaml <<'POD'
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: web
      image: registry.lan:5000/shop/app:1
      command: [/bin/sh, -c, 'echo hello; exec sleep 1000000']
POD
# The usual directory of hosts says that the registry has no TLS.
mkdir -p /etc/podstead/certs.d/registry.lan:5000
echo 'server = "http://registry.lan:5000"' >/etc/podstead/certs.d/registry.lan:5000/hosts.toml
