# A registry with the artifact of the page, as flux would push it, and its signature. openssl makes what cosign makes.
openssl ecparam -genkey -noout -name prime256v1 -out cosign.key 2>/dev/null
openssl pkey -pubout -in cosign.key -out cosign.pub
mkdir /run/registry /run/deploy
cat >/run/registry.yaml <<CONFIG
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: /run/registry}}
http: {addr: '127.0.0.1:5000'}
CONFIG
docker-registry serve /run/registry.yaml >/run/registry.log 2>&1 &
until_true 'curl -s http://registry.lan:5000/v2/'
cat >/run/deploy/web.yaml <<'POD'
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
    - name: web
      image: localhost/busybox:1
      command: [/bin/sh, -c, 'echo hello; exec sleep 1000000']
POD
repository=http://registry.lan:5000/v2/shop/fleet
kind=application/vnd.oci.image.manifest.v1+json
# push FILE: prints digest and size.
push() {
    local digest place
    digest=sha256:$(sha256sum "$1" | cut -d' ' -f1)
    place=$(curl -sf -X POST -D - -o /dev/null "$repository/blobs/uploads/" | tr -d '\r' | sed -n 's/^Location: //p')
    curl -sf -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$1" "$place&digest=$digest" >&2
    printf '"digest":"%s","size":%s' "$digest" "$(stat -c %s "$1")"
}
printf '{}' >empty
tar -C /run/deploy -czf layer .
cat >artifact <<MANIFEST
{"schemaVersion":2,"mediaType":"$kind","config":{"mediaType":"application/vnd.cncf.flux.config.v1+json",$(push empty)},
"layers":[{"mediaType":"application/vnd.cncf.flux.content.v1.tar+gzip",$(push layer)}],
"annotations":{"org.opencontainers.image.created":"2026-11-29T08:00:00Z","org.opencontainers.image.revision":"main@sha1:0a1b2c"}}
MANIFEST
curl -sf -X PUT -H "Content-Type: $kind" --data-binary @artifact "$repository/manifests/1.0.0"
digest=$(sha256sum artifact | cut -d' ' -f1)
printf '{"critical":{"identity":{"docker-reference":"registry.lan:5000/shop/fleet"},"image":{"docker-manifest-digest":"sha256:%s"},"type":"cosign container image signature"},"optional":null}' "$digest" >payload
signature=$(openssl dgst -sha256 -sign cosign.key payload | base64 -w0)
cat >signatures <<MANIFEST
{"schemaVersion":2,"mediaType":"$kind","config":{"mediaType":"application/vnd.oci.image.config.v1+json",$(push empty)},
"layers":[{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json",$(push payload),"annotations":{"dev.cosignproject.cosign/signature":"$signature"}}]}
MANIFEST
curl -sf -X PUT -H "Content-Type: $kind" --data-binary @signatures "$repository/manifests/sha256-$digest.sig"
