# A cluster that signs what is requested, and does not answer otherwise.
printf 'apiVersion: podstead.dev/v1alpha1\nkind: Config\n' >/etc/podstead/config.yaml
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /run/ca.key -out /run/ca.crt -days 2 -subj /CN=cluster 2>/dev/null
{
    until_true 'openssl req -in node.csr -noout -verify'
    openssl req -in node.csr -noout -subject -nameopt multiline | grep -q 'commonName *= system:node:edge-1'
    openssl x509 -req -in node.csr -CA /run/ca.crt -CAkey /run/ca.key -CAcreateserial -days 1 \
        -extfile <(echo extendedKeyUsage=clientAuth) -out /run/node.crt 2>/dev/null
    mv /run/node.crt node.crt
    mv /run/ca.crt ca.crt
} &
