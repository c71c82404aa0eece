#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Installs what onset needs on Debian 12 or 13 (amd64), with apt, by package name. Quick when all is there.
#
# usage: setup/debian.sh build|run|test|firmware …
set -eu
# What apt says is parsed.
export LC_ALL=C

BUILD="gcc libc6-dev make git"
# Both Debians keep a current compiler by this name; the one called rustc is older than the release.
RUST="rustc-web cargo-web rustfmt-web"
# The viewer of the report is built with npm.
VIEWER="nodejs"
RUN="mount kmod xz-utils zstd dpkg-dev libc-bin binutils bubblewrap debian-archive-keyring e2fsprogs iproute2 iputils-ping iperf3 netpipe-tcp rt-tests stress-ng findutils tar"
TEST="procps g++ chromium fonts-dejavu-core python3-venv sigrok-cli strace device-tree-compiler acpica-tools patch"
# The compiler for the generator on a board; what finishes its image, and its tests, is node.
FIRMWARE="gcc gcc-arm-none-eabi make"
# The oldest that the plugin gets on with, and the one that is installed where there is none (QEMUS_TRIED in
# crates/wire/src/arguments.rs). A newer one that is there stays: the plugin looks into it itself.
QEMU=10.0

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

STAMP=/var/lib/apt/periodic/onset-update-stamp

have_fresh_lists() {
	[ -n "$(find "$STAMP" -mtime -1 2>/dev/null)" ]
}

can_be_root() {
	[ "$(id -u)" = 0 ] || command -v sudo >/dev/null
}

# Package lists older than a day may name packages that the archive has dropped.
update_lists() {
	if have_fresh_lists && [ "${1:-}" != now ]; then
		return
	fi
	as_root apt-get update -qq && as_root mkdir -p "${STAMP%/*}" && as_root touch "$STAMP"
}

# Kernels are looked up in the lists too, so they are to be fresh even where every package is there.
refresh_lists() {
	if ! can_be_root || ! update_lists; then
		echo "setup: the package lists may be older than the archive; if fetching fails, run apt-get update as root"
	fi
}

# The mirror from which apt gets the main component of a release, by its name or its code name; nothing where it
# does not.
mirror_of() {
	apt-get indextargets --format '$(RELEASE) $(CODENAME) $(COMPONENT) $(SITE)' 2>/dev/null |
		awk -v release="$1" '($1 == release || $2 == release) && $3 == "main" { print $4; exit }'
}

# Adds the backports of this Debian release, from the mirror that the machine already uses.
add_backports() {
	mirror=$(mirror_of "$codename")
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

# The versions of QEMU that apt offers, newest first.
offered_qemu() {
	apt-cache madison qemu-system-x86 2>/dev/null | awk -F ' *[|] *' '!seen[$2]++ { print $2 }'
}

# Those of the lines on stdin, versions of packages, that are of the series QEMU: 1:10.0.2+ds-1 is of 10.0.
of_series() {
	awk -v series="$QEMU" '{ version = $0; sub(/^[0-9]+:/, "", version) } index(version, series ".") == 1'
}

# Whether a version of the package is of the series QEMU or newer.
is_new_enough() {
	dpkg --compare-versions "$1" ge "1:$QEMU"
}

install_qemu() {
	installed=
	if is_installed qemu-system-x86; then
		installed=$(dpkg-query -W -f '${Version}' qemu-system-x86)
		if is_new_enough "$installed"; then
			[ -n "$(echo "$installed" | of_series)" ] ||
				echo "setup: QEMU $installed is installed and stays; onset doctor says whether it is one that onset was tried with"
			return
		fi
	fi
	update_lists
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	if [ -z "$(offered_qemu | of_series)" ] && [ -z "$(mirror_of "$codename-backports")" ]; then
		add_backports
	fi
	version=$(offered_qemu | of_series | head -n 1)
	if [ -z "$version" ]; then
		# A release without that series has a newer one.
		version=$(offered_qemu | head -n 1)
		[ -n "$version" ] && is_new_enough "$version" ||
			die "onset needs QEMU $QEMU or later, and apt offers: $(offered_qemu | tr '\n' ' ')(installed: ${installed:-none})"
	fi
	echo "setup: installing qemu-system-x86 $version"
	target=
	# Its dependencies of the same version have to come from there too.
	case $version in *~bpo*) target="-t $codename-backports" ;; esac
	# shellcheck disable=SC2086
	as_root apt-get install -y -qq --no-install-recommends $target "qemu-system-x86=$version" >/dev/null
}

# A toolchain that is there, from wherever, is left alone; cargo itself says when it is too old.
install_rust() {
	command -v cargo >/dev/null && return
	[ ! -x "$HOME/.cargo/bin/cargo" ] ||
		die "cargo is in ~/.cargo/bin, which is not in PATH: add it (sudo replaces PATH: run make as yourself, setup asks for sudo where it needs it)"
	# shellcheck disable=SC2086
	install_missing $RUST
}

command -v apt-get >/dev/null && [ "$(dpkg --print-architecture)" = amd64 ] ||
	die "knows Debian 12 and 13 on amd64; on another system install by hand: $BUILD $VIEWER npm qemu-system-x86 (QEMU $QEMU or later) $RUN"
for stage in "$@"; do
	case $stage in
	build)
		# shellcheck disable=SC2086
		install_missing $BUILD
		command -v node >/dev/null || install_missing $VIEWER
		command -v npm >/dev/null || install_missing npm
		install_rust
		;;
	run)
		install_qemu
		# shellcheck disable=SC2086
		install_missing $RUN
		refresh_lists
		;;
	test)
		# shellcheck disable=SC2086
		install_missing $TEST
		;;
	firmware)
		# shellcheck disable=SC2086
		install_missing $FIRMWARE
		command -v node >/dev/null || install_missing $VIEWER
		command -v npm >/dev/null || install_missing npm
		;;
	*) die "unknown stage $stage" ;;
	esac
done
