#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The one-shot entry of the boot menu, with GRUB itself: a guest whose disk has Debian's GRUB (for a BIOS), its scripts and
# a kernel of the cache. onset runs in the guest as on any machine. Shows that
#   - the boot after `onset tune apply` has the parameters on its command line, and the boot after that has not;
#   - a kernel that does not come up with a parameter comes up without it after a reset;
#   - after `onset tune undo` the files, the menu and GRUB's environment are the same to the byte.
#
# usage: tests/slow/bootloader.sh [FLAVOUR]
#
# Takes some three minutes, and fetches 40 MB of Debian's packages. Exits with 1 where something is not as it should be.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
flavour=${1:-6.12}
name=bootloader
. "$here/tests/slow/guest.sh"
need busybox-static kmod xz-utils e2fsprogs fdisk mmdebstrap
mirror=$("$here/setup/mirror.sh")
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")

# The initramfs goes on to the disk.
cat >"$work/init" <<'END'
#!/bin/sh
PATH=/bin
mount -t devtmpfs none /dev
while read -r module; do insmod "/modules/$module.ko"; done </modules/order
mount -t ext4 /dev/vda1 /disk && exec switch_root /disk /step
END
tree "$work/tree" "$work/init"
rm "$work/tree/bin/onset"
modules "$flavour" "$work/tree" virtio_pci virtio_blk crc32c_generic crc32c_cryptoapi ext4
image "$work/tree" "$work/image"

# The disk. Its process 1 carries out the script on the second disk.
root=$work/root
mmdebstrap --quiet --variant=extract \
	--include=bash,dash,coreutils,sed,grep,mawk,findutils,grub-common,grub2-common,grub-pc-bin,gettext-base,libc-bin,mount,util-linux,diffutils \
	"$suite" "$root" "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" 2>"$work/mmdebstrap" ||
	{ cat "$work/mmdebstrap"; die "mmdebstrap cannot make the guest's disk"; }
mkdir -p "$root/etc/default/grub.d" "$root/var/lib/onset" "$root/usr/local/bin" "$root/boot/grub"
[ -e "$root/bin/sh" ] || ln -s dash "$root/bin/sh"
[ -e "$root/usr/bin/awk" ] || ln -s mawk "$root/usr/bin/awk"
[ -e "$root/usr/bin/which" ] || ln -s which.debianutils "$root/usr/bin/which"
cp /bin/busybox "$root/bin/"
strip -o "$root/usr/local/bin/onset" "$onset"
for library in $(ldd "$onset" | grep -o '/[^ ]*'); do [ -e "$root$library" ] || install -D "$library" "$root$library"; done
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
echo "/dev/vda1 / ext4 rw 0 1" >"$root/etc/fstab"
cp "$cache/$flavour/vmlinuz" "$root/boot/vmlinuz-$(release "$flavour")"
cp "$work/image" "$root/boot/initrd.img-$(release "$flavour")"
cp "$(configuration "$flavour")" "$root/boot/config-$(release "$flavour")"
cat >"$root/etc/default/grub" <<END
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="$(echo "$words" | sed 's/panic=-1 //')"
GRUB_TERMINAL=serial
GRUB_DISABLE_RECOVERY=true
END
cat >"$root/step" <<'END'
#!/bin/sh
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev 2>/dev/null
echo "@line $(cat /proc/cmdline)"
# The files of the boot menu. GRUB's modules are not among them.
files() { find /etc/default /etc/grub.d /boot -type f ! -path '*/i386-pc/*' | sort | while read -r file; do stat -c '%n %a' "$file" && sha256sum "$file"; done; }
cat /dev/vdb >/tmp/script
. /tmp/script
sync
busybox poweroff -f
END
chmod 755 "$root/step"
truncate -s 400M "$work/vda"
echo 'start=2048, type=83, bootable' | sfdisk -q "$work/vda"
mke2fs -q -F -t ext4 -E offset=1048576 -d "$root" "$work/vda" 398M

# boot SCRIPT [ARGUMENT...]: boots and carries the script out. What the guest says goes to $work/said. A guest that has not
# said a word of its own after so many seconds, or has panicked, is reset: switched off.
boot() {
	{ echo "$1" && head -c 4096 /dev/zero | tr '\0' '\n'; } | head -c 4096 >"$work/vdb"
	shift
	: >"$work/said"
	(machine -drive "file=$work/vda,format=raw,if=virtio" -drive "file=$work/vdb,format=raw,if=virtio,read-only=on" \
		-m 512 -no-reboot -serial "file:$work/said" "$@") &
	machine=$!
	waited=0
	while kill -0 "$machine" 2>/dev/null; do
		sleep 1
		waited=$((waited + 1))
		if grep -q 'Kernel panic' "$work/said" || { [ $waited -gt 120 ] && ! grep -q '^@line' "$work/said"; } || [ $waited -gt 400 ]; then
			kill -9 "$machine" 2>/dev/null || true
		fi
	done
	wait "$machine" || true
	machine=
	tr -d '\r' <"$work/said" >"$work/said.text"
}
line() { sed -n 's/.*@line //p' "$work/said.text"; }
show() { echo "bootloader: $1: $(line | grep -o 'BOOT_IMAGE.*')"; }
fail() { cat "$work/said.text"; die "$1"; }

boot 'grub-install --target=i386-pc /dev/vda && update-grub && files >/before && echo @installed' \
	-kernel "$cache/$flavour/vmlinuz" -initrd "$work/image" -append "$words"
grep -q '^@installed' "$work/said.text" || fail "GRUB cannot be installed"

boot 'onset tune apply --knob threadirqs --knob skew_tick=1; echo "@status $?"'
show "the first boot"
usual=$(line)
[ "$usual" ] || fail "GRUB does not boot the guest"
grep -q '^@status 0' "$work/said.text" || fail "onset cannot apply the parameters"

boot 'true'
show "after apply"
[ "$(line)" = "$usual threadirqs skew_tick=1" ] || fail "the boot after apply has not the parameters"

boot 'onset tune apply --knob hugepages=99999; echo "@status $?"'
show "the boot after that"
[ "$(line)" = "$usual" ] || fail "the second boot after apply is not as before"
grep -q '^@status 0' "$work/said.text" || fail "onset cannot apply the parameter that the kernel does not survive"

boot 'true'
[ -z "$(line)" ] || fail "the kernel came up with a parameter that it should not survive"
echo "bootloader: with hugepages=99999: $(grep -m 1 'Kernel panic' "$work/said.text" | sed 's/^\[[^]]*\] *//' || echo 'no word for two minutes'); reset"

boot 'onset tune undo; echo "@status $?"; files >/after; diff /before /after && echo @same; onset tune status'
show "after the reset"
[ "$(line)" = "$usual" ] || fail "the boot after the reset is not as before"
grep -q '^@status 0' "$work/said.text" && grep -q '^@same' "$work/said.text" || fail "undo does not give everything back"
echo "bootloader: $(sed -n 's/^\([0-9].* restored.*\)/undo: \1/p' "$work/said.text"); files, menu and environment are the same to the byte"

boot 'true'
show "after undo"
[ "$(line)" = "$usual" ] || fail "the boot after undo is not as before"
echo "bootloader: GRUB booted Linux $(release "$flavour") as told"
