#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes a root directory with the newest QEMU that onset was tried with, that of the backports of Debian 13, for a machine
# that has an older one: ONSET_QEMU names it. Needs mmdebstrap; no root, and nothing of the machine changes.
#
# usage: setup/qemu.sh DIRECTORY
set -eu

RELEASE=trixie
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

die() {
	echo "setup: $*" >&2
	exit 1
}

[ $# = 1 ] || die "usage: setup/qemu.sh DIRECTORY"
[ ! -e "$1" ] || die "$1 is there already"
command -v mmdebstrap >/dev/null || die "mmdebstrap is missing; install it: apt-get install mmdebstrap"
mirror=$("$(dirname "$0")/mirror.sh")
# A directory of that name is whole or is not there.
draft=$(mktemp -d "$1.XXXXXX")
trap 'rm -rf "$draft"' EXIT
mmdebstrap --quiet --variant=extract --architectures=amd64 --include=qemu-system-x86 \
	--aptopt="APT::Default-Release \"$RELEASE-backports\"" "$RELEASE" "$draft" \
	"deb [signed-by=$KEYRING] $mirror $RELEASE main" "deb [signed-by=$KEYRING] $mirror $RELEASE-backports main"
chmod 755 "$draft"
mv "$draft" "$1"
trap - EXIT
echo "ONSET_QEMU=$(cd "$1" && pwd)"
