#!/usr/bin/env bash
# Installs Debian packages that tests use, without starting the services in them. As root.
#
#   scripts/ci_packages.sh PACKAGE...
set -euo pipefail

missing=()
for package in "$@"; do
    if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" != installed ]; then
        missing+=("$package")
    fi
done
if [ ${#missing[@]} = 0 ]; then exit 0; fi

# Asked by each package whether it may start its services (Debian policy, invoke-rc.d).
if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
fi
install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "${missing[@]}" </dev/null >&2
}
# Old package lists name packages that are gone: they are looked up anew once.
install || { apt-get update -q >&2 && install; }
