# A registry over http, and a mirror of it with a certificate of its own authority.
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -out mirror-ca.pem -days 2 -subj /CN=authority 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=mirror.lan 2>/dev/null
openssl x509 -req -in request.pem -CA mirror-ca.pem -CAkey ca-key.pem -out certificate.pem -days 2 -extfile <(echo subjectAltName=DNS:mirror.lan) 2>/dev/null
echo 127.0.0.1 mirror.lan >>/run/hosts
mkdir /run/registry /run/mirror
cat >/run/registry.yaml <<CONFIG
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: /run/registry}}
http: {addr: '127.0.0.1:5000'}
CONFIG
cat >/run/mirror.yaml <<CONFIG
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: /run/mirror}}
http: {addr: '127.0.0.1:5001', tls: {certificate: $PWD/certificate.pem, key: $PWD/key.pem}}
proxy: {remoteurl: 'http://registry.lan:5000'}
CONFIG
docker-registry serve /run/registry.yaml >/run/registry.log 2>&1 &
until_true 'curl -s http://registry.lan:5000/v2/'
docker-registry serve /run/mirror.yaml >/run/mirror.log 2>&1 &
until_true 'curl -sk https://mirror.lan:5001/v2/'
/run/given/support/make-image.sh /run/app.tar localhost/app:1
for name in app tool; do
    skopeo copy --quiet --dest-tls-verify=false oci-archive:/run/app.tar docker://registry.lan:5000/shop/$name:1
done
