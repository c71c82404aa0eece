#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What `onset patch` does: our own preemption points, the patches of the directories beside this file, and kernels that are built
# with and without them. Debian's source package of the series comes by apt. The two kernels have one configuration, rig.config,
# and one compiler, so that what differs between them are the patches. A series SERIES-rt is PREEMPT_RT, of the same sources: its
# configuration is rig.config with what rt.config says otherwise. docs/patches.md says what the patches do and what they cost.
#
# usage: patches.sh list                            the patches, by series
#        patches.sh build SERIES [PATCH…]           adds to the cache SERIES-onset-base, without a patch, and SERIES-onset, with all
#                                                   patches of the series, or SERIES-onset-PATCH+PATCH… with those that are named
#
# ONSET    the command. [default: onset]
# WORKSHOP where sources and objects lie: up to 6 GB, which may go afterwards. The directories SERIES-onset* there stay: onset
#          builds its driver against the headers in them. [default: ~/.cache/onset/patches]
# JOBS     how many compilers run at once. [default: one per processor]
set -eu
export LC_ALL=C

: "${ONSET:=onset}"
: "${WORKSHOP:=${XDG_CACHE_HOME:-$HOME/.cache}/onset/patches}"
: "${JOBS:=$(nproc)}"
home=$(cd "$(dirname "$0")" && pwd)

die() {
	echo "onset patch: $*" >&2
	exit 1
}

# The value of a header's line: "Cuts: …".
says() {
	sed -n "/^--- /q; s/^$2: *//p" "$1" | head -n 1
}

list() {
	for series in "$home"/*/; do
		for patch in "$series"*.patch; do
			printf '%s %s\n    cuts      %s\n    measured  %s\n' "$(basename "$series")" "$(basename "$patch" .patch)" \
				"$(says "$patch" Cuts)" "$(says "$patch" Measured)"
		done
	done
}

# The files that the patch changes.
touched_by() {
	sed -n 's|^+++ b/\([^[:space:]]*\).*|\1|p' "$1"
}

# The configuration of the series.
settings() {
	case $series in
	*-rt)
		others=$(sed -n 's/^\(# \)\{0,1\}\(CONFIG_[A-Z0-9_]*\)[ =].*/\2/p' "$home/rt.config")
		grep '^CONFIG_' "$home/rig.config" | grep -vwF "$others"
		grep '^CONFIG_' "$home/rt.config"
		;;
	*) grep '^CONFIG_' "$home/rig.config" ;;
	esac
}

# Debian's sources of the series, unpacked to $tree. The package is not installed, so this needs no root.
fetch() {
	[ ! -f "$tree/Makefile" ] || return 0
	# What was kept of an older version of the sources is none of the new one.
	rm -rf "$WORKSHOP/package" "$WORKSHOP/pristine-$sources"
	mkdir -p "$WORKSHOP/package"
	# Steps that are joined: in a condition the shell goes on after a step that failed.
	(
		cd "$WORKSHOP/package" &&
			apt-get download "linux-source-$sources" &&
			dpkg-deb --fsys-tarfile linux-source-"$sources"_*.deb >package.tar &&
			tar -xOf package.tar "./usr/src/linux-source-$sources.tar.xz" >sources.tar.xz &&
			tar -xJf sources.tar.xz &&
			rm -f ./*.deb package.tar sources.tar.xz
	) || die "no sources of $series: apt needs the package linux-source-$sources, of Debian or its backports, and $WORKSHOP room for 6 GB"
	mv "$WORKSHOP/package/linux-source-$sources" "$tree"
}

# Brings the tree to Debian's state plus the patches on the command line. What differs is written anew, so that make compiles it
# again whichever way it changes. Each file is kept before its first patch, so that a series and its -rt can share the tree.
assemble() {
	kept=$WORKSHOP/pristine-$sources
	mkdir -p "$kept"
	(cd "$kept" && find . -type f) | while read -r file; do
		cmp -s "$kept/$file" "$tree/$file" || cp "$kept/$file" "$tree/$file"
	done
	for patch in "$@"; do
		touched_by "$patch" | while read -r file; do
			mkdir -p "$kept/$(dirname "$file")"
			[ -e "$kept/$file" ] || cp "$tree/$file" "$kept/$file"
		done
		patch --quiet --strip 1 --fuzz 0 --directory "$tree" <"$patch" || die "$(basename "$patch") does not apply to $series"
	done
}

# Builds the kernel NAME with the patches on the command line, and adds it to the cache, unless it is there. Its release ends with a
# hash of the configuration and the patches: who runs it sees of what it is made.
kernel() {
	name=$1
	shift
	mark=$( (settings && sed -s '1,/^---$/d' /dev/null "$@") | sha256sum | cut -c 1-8)
	if "$ONSET" kernels list | grep -q "^$name  *[^ ]*-onset-$mark "; then
		echo "onset patch: $name is in the cache, made of these patches"
		return
	fi
	assemble "$@"
	made=$WORKSHOP/$name
	rm -rf "$made"
	mkdir -p "$made"
	# No name, no host and no date: the same sources make the same kernel.
	export KBUILD_BUILD_USER=onset KBUILD_BUILD_HOST=onset KBUILD_BUILD_VERSION=1
	export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 2026'
	set -- make -s -C "$tree" "O=$WORKSHOP/objects-$series" "LOCALVERSION=-onset-$mark"
	settings >"$made/settings"
	KCONFIG_ALLCONFIG=$made/settings "$@" allnoconfig
	grep -vxFf "$WORKSHOP/objects-$series/.config" "$made/settings" | while read -r lost; do
		echo "onset patch: the configuration of $series lacks $lost"
	done
	"$@" -j "$JOBS" bzImage modules
	"$@" modules_install "INSTALL_MOD_PATH=$made" INSTALL_MOD_STRIP=1 DEPMOD=true
	"$@" run-command "KBUILD_RUN_COMMAND=+\$(srctree)/scripts/package/install-extmod-build $made/headers"
	cp "$WORKSHOP/objects-$series/.config" "$made/headers/.config"
	"$ONSET" kernels add --name "$name" --replace --image "$WORKSHOP/objects-$series/arch/x86/boot/bzImage" \
		--modules "$made"/lib/modules/* --headers "$made/headers"
}

build() {
	series=$1
	shift
	[ -d "$home/$series" ] || die "there are no patches of the series $series; onset patch list has the names"
	for tool in flex bison bc pahole patch gcc make; do
		command -v "$tool" >/dev/null || die "needs $tool: apt-get install flex bison bc dwarves patch libelf-dev libssl-dev gcc make"
	done
	patched=$series-onset
	if [ $# -eq 0 ]; then
		set -- "$home/$series"/*.patch
	else
		patched=$patched-$(echo "$*" | tr ' ' +)
		for patch; do
			[ -f "$home/$series/$patch.patch" ] || die "$series has no patch $patch; onset patch list has the names"
			set -- "$@" "$home/$series/$patch.patch"
			shift
		done
	fi
	sources=${series%-rt}
	tree=$WORKSHOP/linux-$sources
	mkdir -p "$WORKSHOP"
	fetch
	kernel "$series-onset-base"
	kernel "$patched" "$@"
}

case "${1:-}:$#" in
list:1) list ;;
build:[2-9] | build:[1-9][0-9])
	shift
	build "$@"
	;;
*) die "usage: patches.sh list | build SERIES [PATCH…]" ;;
esac
