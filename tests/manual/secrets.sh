/run/given/support/make-image.sh /var/lib/podstead/images/preload/named.tar docker.io/library/busybox:1.36
git init -q --bare /srv/fleet.git
git clone -q /srv/fleet.git fleet
git -C fleet config user.name ann
git -C fleet config user.email ann@example.org
