#!/bin/sh
# Makes a container image archive with tar, sha256sum and a shell only: no container tool, no registry, no network.
#
#   make-image.sh [options] OUT NAME
#
# OUT ends in .tar, .tar.gz or .tar.zst. NAME is the reference that the archive carries, e.g. localhost/busybox:1.
# Without --root the content is Debian's busybox-static (apt-get install busybox-static) with all its applets.
#
#   --format oci|docker     OCI layout (default) or what `docker save` writes
#   --root DIR              use this tree instead (e.g. made by mmdebstrap); needs root for owners and device nodes
#   --add SRC:DEST          put a file or directory SRC at DEST in the image; may be repeated
#   --layer DIR             a further layer on top; may be repeated
#   --entrypoint JSON       e.g. '["/bin/httpd","-f"]'
#   --cmd JSON              default '["/bin/sh"]'
#   --env NAME=VALUE        may be repeated
#   --user USER  --workdir DIR  --stop-signal SIGNAL
set -eu

fail() { echo "make-image.sh: $*" >&2; exit 1; }
# Text as a JSON string; no control characters are expected.
quote() { printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"; }
digest() { sha256sum "$1" | cut -d' ' -f1; }
size() { stat -c %s "$1"; }

format=oci root= entrypoint= cmd='["/bin/sh"]' user= workdir= stop_signal= out= name=
env='"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"'
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT INT TERM
: > "$work/adds"; : > "$work/more"
while [ $# -gt 0 ]; do
  case $1 in
    --format) format=$2; shift 2 ;;
    --root) root=$2; shift 2 ;;
    --add) printf '%s\n' "$2" >> "$work/adds"; shift 2 ;;
    --layer) printf '%s\n' "$2" >> "$work/more"; shift 2 ;;
    --entrypoint) entrypoint=$2; shift 2 ;;
    --cmd) cmd=$2; shift 2 ;;
    --env) env="$env,$(quote "$2")"; shift 2 ;;
    --user) user=$2; shift 2 ;;
    --workdir) workdir=$2; shift 2 ;;
    --stop-signal) stop_signal=$2; shift 2 ;;
    -*) fail "unknown option $1" ;;
    *) if [ -z "$out" ]; then out=$1; elif [ -z "$name" ]; then name=$1; else fail "too many arguments"; fi; shift ;;
  esac
done
[ -n "$out" ] && [ -n "$name" ] || fail "usage: make-image.sh [options] OUT NAME"
case $format in oci|docker) ;; *) fail "--format is oci or docker" ;; esac

if [ -z "$root" ]; then
  root=$work/root
  busybox=$(command -v busybox) || fail "busybox is missing: apt-get install -y busybox-static"
  umask 022
  mkdir -p "$root/bin" "$root/etc" "$root/root" "$root/home" "$root/tmp" "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/usr/bin" "$root/usr/sbin" "$root/sbin" "$root/var/www" "$root/var/log"
  chmod 1777 "$root/tmp"; chmod 700 "$root/root"
  cp "$busybox" "$root/bin/busybox"; chmod 755 "$root/bin/busybox"
  for applet in $("$root/bin/busybox" --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
  printf 'root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/bin/false\nnobody:x:65534:65534:nobody:/:/bin/false\n' > "$root/etc/passwd"
  printf 'root:x:0:\nadm:x:4:www-data\nwww-data:x:33:\nstaff:x:50:www-data\nnogroup:x:65534:\n' > "$root/etc/group"
  echo 'podstead test image' > "$root/var/www/index.html"
  owner="--owner=0 --group=0"
else
  [ -d "$root" ] || fail "$root is not a directory"
  owner=
fi
if [ -s "$work/adds" ]; then
  # Additions are a layer of their own, so that a --root is never written to.
  mkdir "$work/added"
  while IFS=: read -r source target; do
    mkdir -p "$work/added/$(dirname "$target")"
    cp -a "$source" "$work/added/$target"
  done < "$work/adds"
  printf '%s\n' "$work/added" >> "$work/more"
fi

image=$work/image; blobs=$image/blobs/sha256; mkdir -p "$blobs"
diff_ids= descriptors= docker_layers=
layer() {
  # Without these PAX options the layer would carry process id and access times, and have another digest each time.
  # shellcheck disable=SC2086 # the owner options are two words or none
  tar -C "$1" -c --format=posix --pax-option='exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime' --sort=name --mtime=@1700000000 --numeric-owner $2 --xattrs --xattrs-include='*' -f "$work/layer" .
  diff=$(digest "$work/layer")
  diff_ids="$diff_ids${diff_ids:+,}\"sha256:$diff\""
  if [ $format = docker ]; then
    mv "$work/layer" "$image/$diff.tar"
    docker_layers="$docker_layers${docker_layers:+,}\"$diff.tar\""
  else
    gzip -n -6 < "$work/layer" > "$work/layer.gz"
    blob=$(digest "$work/layer.gz")
    descriptors="$descriptors${descriptors:+,}{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"sha256:$blob\",\"size\":$(size "$work/layer.gz")}"
    mv "$work/layer.gz" "$blobs/$blob"
    rm "$work/layer"
  fi
}
layer "$root" "$owner"
while read -r tree; do
  if [ "$tree" = "$work/added" ]; then layer "$tree" "--owner=0 --group=0"; else layer "$tree" ""; fi
done < "$work/more"

case $(uname -m) in
  x86_64) arch='"architecture":"amd64"' ;;
  aarch64) arch='"architecture":"arm64","variant":"v8"' ;;
  armv7l) arch='"architecture":"arm","variant":"v7"' ;;
  riscv64) arch='"architecture":"riscv64"' ;;
  *) fail "no name for architecture $(uname -m)" ;;
esac
process="\"Env\":[$env],\"Cmd\":$cmd"
[ -z "$entrypoint" ] || process="$process,\"Entrypoint\":$entrypoint"
[ -z "$user" ] || process="$process,\"User\":$(quote "$user")"
[ -z "$workdir" ] || process="$process,\"WorkingDir\":$(quote "$workdir")"
[ -z "$stop_signal" ] || process="$process,\"StopSignal\":$(quote "$stop_signal")"
printf '{"created":"2023-11-14T22:13:20Z",%s,"os":"linux","config":{%s},"rootfs":{"type":"layers","diff_ids":[%s]}}' "$arch" "$process" "$diff_ids" > "$work/config"
config=$(digest "$work/config")
if [ $format = docker ]; then
  rmdir "$blobs" "$image/blobs"
  mv "$work/config" "$image/$config.json"
  printf '[{"Config":"%s.json","RepoTags":[%s],"Layers":[%s]}]' "$config" "$(quote "$name")" "$docker_layers" > "$image/manifest.json"
else
  manifest_type=application/vnd.oci.image.manifest.v1+json
  printf '{"schemaVersion":2,"mediaType":"%s","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[%s]}' \
    "$manifest_type" "$config" "$(size "$work/config")" "$descriptors" > "$work/manifest"
  mv "$work/config" "$blobs/$config"
  manifest=$(digest "$work/manifest"); manifest_size=$(size "$work/manifest")
  mv "$work/manifest" "$blobs/$manifest"
  printf '{"imageLayoutVersion":"1.0.0"}' > "$image/oci-layout"
  printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"%s","digest":"sha256:%s","size":%s,"annotations":{"io.containerd.image.name":%s,"org.opencontainers.image.ref.name":%s}}]}' \
    "$manifest_type" "$manifest" "$manifest_size" "$(quote "$name")" "$(quote "$name")" > "$image/index.json"
fi
cd "$image"
case $out in
  /*) target=$out ;;
  *) target=$OLDPWD/$out ;;
esac
case $out in
  *.tar.gz|*.tgz) pack='gzip -n -6' ;;
  *.tar.zst) pack='zstd -q -3 -T1' ;;
  *.tar) pack=cat ;;
  *) fail "OUT ends in .tar, .tar.gz or .tar.zst" ;;
esac
# Renamed into place, so that a watched directory never sees half an archive.
partial=$(dirname "$target")/.$(basename "$target").partial
tar -c --sort=name --mtime=@1700000000 --owner=0 --group=0 --numeric-owner -f - -- * | $pack > "$partial"
mv "$partial" "$target"
