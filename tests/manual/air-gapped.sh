# What came on the stick, and the work of the machine with a network.
/run/given/support/make-image.sh nginx.tar docker.io/library/nginx:1.27
git init -q /srv/work
cat >/srv/work/web.yaml <<'POD'
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - {name: main, image: docker.io/library/nginx:1.27, command: [sleep, '1000000']}
POD
ssh-keygen -q -t ed25519 -N '' -f signing-key
git config --global gpg.format ssh
git config --global user.signingKey "$PWD/signing-key.pub"
git -C /srv/work config user.name ann
git -C /srv/work config user.email ann@example.org
git -C /srv/work add web.yaml
git -C /srv/work commit -q -S -m "A pod"
echo "ann@example.org $(cat signing-key.pub)" >/etc/podstead/allowed_signers
