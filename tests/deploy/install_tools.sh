#!/bin/sh
# Installs the programs that `make deploy-check` needs and this machine lacks, by apt, and says which. If it may not
# install, it names them and fails. Where docker's daemon answers, no other container engine is needed.
set -eu

# program:packages of Debian, joined by +
tools="promtool:prometheus prometheus:prometheus openssl:openssl systemd-analyze:systemd gcc:gcc curl:curl"
# An engine without a daemon, with the network of its containers and names in it.
engine="podman:podman+runc+netavark+aardvark-dns+iptables+catatonit"

docker info >/dev/null 2>&1 || tools="$tools $engine debootstrap:debootstrap"
docker compose version >/dev/null 2>&1 || tools="$tools docker-compose:docker-compose"

# Prints the packages of the tools that are missing.
missing_packages() {
    for tool in $tools; do
        command -v "${tool%:*}" >/dev/null || echo "${tool#*:}" | tr + '\n'
    done
}

# Prints what makes apt-get the superuser's command; fails if nothing does.
superuser() {
    [ "$(id -u)" = 0 ] || { sudo -n true 2>/dev/null && echo "sudo -n"; }
}

missing=$(missing_packages)
[ -n "$missing" ] || exit 0
if command -v apt-get >/dev/null && prefix=$(superuser); then
    # shellcheck disable=SC2086  # a list of words
    echo "make deploy-check installs by apt:" $missing
    $prefix apt-get update -qq
    # shellcheck disable=SC2086  # a list of words
    $prefix apt-get install -qq -y --no-install-recommends $missing
    missing=$(missing_packages)
fi
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086  # a list of words
    echo "make deploy-check lacks programs of these packages of Debian, and may not install them:" $missing >&2
    exit 1
fi
