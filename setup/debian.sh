#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what onset needs on Debian 12 or 13 (amd64), with apt, by package name. Quick when all is there.
#
# usage: setup/debian.sh build|run|test …
set -eu

BUILD="gcc libc6-dev make git"
# The viewer of the report is built with npm.
VIEWER="nodejs"
RUN="qemu-system-x86 kmod xz-utils dpkg-dev libc-bin binutils e2fsprogs iproute2 iputils-ping iperf3 rt-tests stress-ng findutils tar"
TEST="chromium fonts-dejavu-core"
QEMU_MAJOR=10

die() {
	echo "setup: $*" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		env DEBIAN_FRONTEND=noninteractive "$@"
	else
		command -v sudo >/dev/null || die "needs root to install packages: run as root, or install sudo"
		sudo env DEBIAN_FRONTEND=noninteractive "$@"
	fi
}

is_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The version of a package that is installed, or that apt would install.
candidate() {
	apt-cache policy "$1" | sed -n 's/^  Candidate: //p'
}

major() {
	echo "$1" | sed 's/^[0-9]*://; s/[^0-9].*//'
}

# Package lists older than a day may name packages that the archive has dropped.
update_lists() {
	stamp=/var/lib/apt/periodic/onset-update-stamp
	if [ -n "$(find "$stamp" -mtime -1 2>/dev/null)" ] && [ "${1:-}" != now ]; then
		return
	fi
	as_root apt-get update -qq
	as_root mkdir -p "${stamp%/*}"
	as_root touch "$stamp"
}

# Adds the backports of this Debian release, from the mirror that the machine already uses.
add_backports() {
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 2>/dev/null |
		awk -v release="$codename" '$2 == release && $3 == "main" { print $1; exit }')
	[ -n "$mirror" ] || die "cannot tell the Debian mirror from apt's configuration; add $codename-backports to it yourself"
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	as_root sh -c "printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\nSigned-By: %s\n' '$mirror' '$codename' '$keyring' >/etc/apt/sources.list.d/onset-backports.sources"
	update_lists now
}

install_missing() {
	missing=
	for package in "$@"; do
		is_installed "$package" || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	update_lists
	echo "setup: installing$missing"
	# shellcheck disable=SC2086
	as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

install_qemu() {
	if is_installed qemu-system-x86; then
		installed=$(dpkg-query -W -f '${Version}' qemu-system-x86)
		[ "$(major "$installed")" -lt "$QEMU_MAJOR" ] || return 0
	fi
	update_lists
	target=
	if [ "$(major "$(candidate qemu-system-x86)")" -lt "$QEMU_MAJOR" ]; then
		grep -qs backports /etc/apt/sources.list /etc/apt/sources.list.d/* || add_backports
		target="-t $(. /etc/os-release && echo "$VERSION_CODENAME")-backports"
	fi
	echo "setup: installing qemu-system-x86 $target"
	# shellcheck disable=SC2086
	as_root apt-get install -y -qq --no-install-recommends $target qemu-system-x86 >/dev/null
}

command -v apt-get >/dev/null && [ "$(dpkg --print-architecture)" = amd64 ] ||
	die "knows Debian 12 and 13 on amd64; on another system install by hand: $BUILD $VIEWER npm $RUN"
for stage in "$@"; do
	case $stage in
	build)
		# shellcheck disable=SC2086
		install_missing $BUILD
		command -v node >/dev/null || install_missing $VIEWER
		command -v npm >/dev/null || install_missing npm
		command -v cargo >/dev/null || die "needs a Rust toolchain (cargo) of version 1.88 or later; install it with rustup"
		;;
	run)
		install_qemu
		# shellcheck disable=SC2086
		install_missing $RUN
		;;
	test)
		# shellcheck disable=SC2086
		install_missing $TEST
		;;
	*) die "unknown stage $stage" ;;
	esac
done
