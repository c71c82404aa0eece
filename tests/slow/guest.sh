# SPDX-License-Identifier: GPL-2.0-or-later
# Guests with onset itself in them, for the slow tests that source this file. Such a guest has a kernel of the cache
# (`make kernels`), an initramfs with busybox, the release command and a script as process 1, and runs under TCG.
#
# Who sources it has set: here (the house), name (of the test). It gets: work (a directory of its own, which goes at the end).

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

cache=${XDG_CACHE_HOME:-$HOME/.cache}/onset/kernels
onset=${ONSET:-$here/target/release/onset}

die() { echo "$name: $*" >&2; exit 1; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# need PACKAGE...: installs what is missing of the packages of Debian.
need() {
	for package in "$@"; do
		dpkg -s "$package" >/dev/null 2>&1 || as_root apt-get install -y -qq --no-install-recommends "$package" >/dev/null
	done
}

# release FLAVOUR: the release of a kernel of the cache.
release() { sed -n 's/.*"release": "\(.*\)".*/\1/p' "$cache/$1/kernel.json"; }

# configuration FLAVOUR: the file with the kernel's configuration.
configuration() {
	if [ -f "$cache/$1/config" ]; then echo "$cache/$1/config"; else echo "$cache/$1/headers/usr/src/linux-headers-$(release "$1")/.config"; fi
}

# modules FLAVOUR TREE NAME...: copies these modules and those that they need to TREE/modules, and their order to
# TREE/modules/order. A module that the flavour has built in, or lacks, is left out.
modules() {
	flavour=$1 tree=$2
	shift 2
	mkdir -p "$tree/modules"
	: >>"$tree/modules/order"
	for module in "$@"; do module "$module"; done
}

module() {
	file=$(find "$cache/$flavour/root" -name "$1.ko*" -o -name "$(echo "$1" | tr _ -).ko*" | head -n 1)
	if [ -z "$file" ] || grep -qx "$1" "$tree/modules/order"; then return 0; fi
	for needed in $(modinfo -F depends "$file" | tr ',' ' '); do module "$needed"; done
	# The recursion has changed the variable.
	file=$(find "$cache/$flavour/root" -name "$1.ko*" -o -name "$(echo "$1" | tr _ -).ko*" | head -n 1)
	case $file in *.xz) xz -dc "$file" ;; *) cat "$file" ;; esac >"$tree/modules/$1.ko"
	echo "$1" >>"$tree/modules/order"
}

# program TREE FILE PLACE: puts a program, with its libraries, at a place in the directory.
program() {
	rm -f "$1$3"
	install -D "$2" "$1$3"
	for library in $(ldd "$2" | grep -o '/[^ ]*'); do install -D "$library" "$1$library"; done
}

# tree TREE INIT: a root directory with busybox, onset and its libraries, and INIT as process 1.
tree() {
	[ -x "$onset" ] || die "there is no $onset: run make build"
	mkdir -p "$1/bin" "$1/proc" "$1/sys" "$1/dev" "$1/etc" "$1/tmp" "$1/disk"
	cp /bin/busybox "$1/bin/"
	for applet in $(/bin/busybox --list); do [ -e "$1/bin/$applet" ] || ln -s busybox "$1/bin/$applet"; done
	program "$1" "$onset" /bin/onset
	strip "$1/bin/onset"
	echo 0123456789abcdef0123456789abcdef >"$1/etc/machine-id"
	cp "$here/tests/slow/mounts.sh" "$1/mounts.sh"
	install -m 755 "$2" "$1/init"
}

# image TREE FILE: the initramfs of a directory.
image() { (cd "$1" && find . | busybox cpio -o -H newc -R 0:0 2>/dev/null) >"$2"; }


# Becomes the machine of all guests: run it in the background, or in a subshell. Arguments of QEMU follow.
machine() {
	exec qemu-system-x86_64 -accel tcg,thread=single -machine pc -cpu max -display none -nic none -no-user-config -nodefaults "$@"
}

# Words of a kernel that boots in a few seconds. On a busy host its check of the timer fails at times, and it panics; so no check.
words="console=ttyS0 quiet nokaslr mitigations=off tsc=reliable random.trust_cpu=on panic=-1 audit=0 no_timer_check"
