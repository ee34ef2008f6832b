/run/given/support/make-image.sh /var/lib/podstead/images/preload/named.tar docker.io/library/busybox:1.36
