# A registry with a signed and an unsigned image. openssl makes what cosign makes.
openssl ecparam -genkey -noout -name prime256v1 -out cosign.key 2>/dev/null
openssl pkey -pubout -in cosign.key -out cosign.pub
mkdir /run/registry
cat >/run/registry.yaml <<CONFIG
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: /run/registry}}
http: {addr: '127.0.0.1:5000'}
CONFIG
docker-registry serve /run/registry.yaml >/run/registry.log 2>&1 &
until_true 'curl -s http://registry.lan:5000/v2/'
for name in app unsigned; do
    /run/given/support/make-image.sh --env "NAME=$name" "/run/$name.tar" localhost/app:1
    skopeo copy --quiet --dest-tls-verify=false "oci-archive:/run/$name.tar" "docker://registry.lan:5000/shop/$name:1"
done
repository=http://registry.lan:5000/v2/shop/app
# push FILE: prints digest and size.
push() {
    local digest place
    digest=sha256:$(sha256sum "$1" | cut -d' ' -f1)
    place=$(curl -sf -X POST -D - -o /dev/null "$repository/blobs/uploads/" | tr -d '\r' | sed -n 's/^Location: //p')
    curl -sf -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$1" "$place&digest=$digest" >&2
    printf '"digest":"%s","size":%s' "$digest" "$(stat -c %s "$1")"
}
digest=$(skopeo inspect --raw --tls-verify=false docker://registry.lan:5000/shop/app:1 | sha256sum | cut -d' ' -f1)
printf '{"critical":{"identity":{"docker-reference":"registry.lan:5000/shop/app"},"image":{"docker-manifest-digest":"sha256:%s"},"type":"cosign container image signature"},"optional":null}' "$digest" >payload
printf '{}' >empty
signature=$(openssl dgst -sha256 -sign cosign.key payload | base64 -w0)
kind=application/vnd.oci.image.manifest.v1+json
cat >manifest <<MANIFEST
{"schemaVersion":2,"mediaType":"$kind","config":{"mediaType":"application/vnd.oci.image.config.v1+json",$(push empty)},
"layers":[{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json",$(push payload),"annotations":{"dev.cosignproject.cosign/signature":"$signature"}}]}
MANIFEST
curl -sf -X PUT -H "Content-Type: $kind" --data-binary @manifest "$repository/manifests/sha256-$digest.sig"
