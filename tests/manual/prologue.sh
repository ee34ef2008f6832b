# The host that a page is executed on: in namespaces of its own, with nothing of podstead on it but the binaries and an image.
set -eEuo pipefail
step=0
exec </dev/null
trap 'code=$?; echo "step $step ended with $code; end of the daemon'\''s log:"; tail -n 40 /run/daemon.log; exit $code' ERR

mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /run
# What the test made, and the repository, may lie where the next mounts are.
mkdir -p /run/given /run/home /run/lock
cp "$PODSTEAD_IMAGE" /run/given/busybox.tar
cp "$PODSTEAD_BINARIES/podstead" "$PODSTEAD_BINARIES/podstead-shim" /run/given/
cp -r "$PODSTEAD_REPOSITORY/tests/support" /run/given/support
for directory in /etc/podstead /var/lib/podstead /var/log /srv /usr/local/bin; do
    mkdir -p "$directory"
    mount -t tmpfs -o mode=755 tmpfs "$directory"
done
mkdir -p /etc/podstead/manifests /var/lib/podstead/images/preload /var/log/pods
cp /run/given/busybox.tar /var/lib/podstead/images/preload/
cp /run/given/podstead /run/given/podstead-shim /usr/local/bin/
printf '127.0.0.1 localhost registry.lan config.lan\n' >/run/hosts
mount --bind /run/hosts /etc/hosts
: >/run/resolv.conf
mount --bind /run/resolv.conf "$(realpath /etc/resolv.conf)"
hostname edge-1
ip link set lo up
cd /run/home
export HOME=/run/home PATH=/usr/local/bin:$PATH NO_COLOR=1
git config --global init.defaultBranch main
git config --global protocol.file.allow always

# until_true COMMAND
until_true() {
    local end=$((SECONDS + 90))
    until bash -c "$1" >/run/until.log 2>&1; do
        if [ $SECONDS -ge $end ]; then
            echo "not true: $1"
            cat /run/until.log
            podstead get pods || true
            podstead get events || true
            return 1
        fi
        read -rt 0.2 <> <(:) || true
    done
}
# What systemd does for the service.
daemon=
systemctl() {
    case "$1 ${2:-}" in
    "start podstead" | "restart podstead" | "reload podstead" | "stop podstead") ;;
    *) echo "systemctl $* is not known here" && return 1 ;;
    esac
    if [ "$1" = reload ]; then
        kill -HUP "$daemon"
        return
    fi
    if [ "$1" != start ]; then
        kill "$daemon"
        wait "$daemon" || true
        daemon=
    fi
    if [ "$1" != stop ]; then
        podstead daemon >>/run/daemon.log 2>&1 &
        daemon=$!
        until_true 'podstead version'
    fi
}
finish() {
    [ -z "$daemon" ] || systemctl stop podstead
    podstead stop --all --timeout 5 >/dev/null
}
trap finish EXIT
systemctl start podstead
