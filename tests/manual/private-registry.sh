# A registry with a certificate of its own authority and a password.
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -out ca.pem -days 2 -subj /CN=authority 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=registry.lan 2>/dev/null
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -out certificate.pem -days 2 -extfile <(echo subjectAltName=DNS:registry.lan) 2>/dev/null
mkdir /run/registry
printf 'edge:%s\n' "$(python3 -W ignore -c 'import crypt; print(crypt.crypt("correct-horse", crypt.mksalt(crypt.METHOD_BLOWFISH)))')" >/run/htpasswd
cat >/run/registry.yaml <<CONFIG
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: /run/registry}}
http: {addr: '127.0.0.1:5000', tls: {certificate: $PWD/certificate.pem, key: $PWD/key.pem}}
auth: {htpasswd: {realm: registry, path: /run/htpasswd}}
CONFIG
docker-registry serve /run/registry.yaml >/run/registry.log 2>&1 &
until_true 'curl -sk https://registry.lan:5000/v2/'
/run/given/support/make-image.sh /run/app.tar localhost/app:1
skopeo copy --quiet --dest-tls-verify=false --dest-creds edge:correct-horse oci-archive:/run/app.tar docker://registry.lan:5000/shop/app:1
