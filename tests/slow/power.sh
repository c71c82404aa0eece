#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Cuts the power of a machine that onset tune is changing, or is taking back, and looks whether the next boot's undo gives
# everything back. The machine is a guest with two disks (ext4): / has the journal and the files of the boot menu, /boot the
# menu. QEMU's driver blklogwrites logs what the guest writes and flushes. QEMU is killed at a random moment; then the disks
# get what was flushed, and of the rest a random part, with torn writes among them (cut.py). So what onset has not made
# durable is lost, as with a disk that has a cache. The guest's own processes do not see the kill coming.
#
# The programs of GRUB are stand-ins: scripts that write the same files in the same way. bootloader.sh has the real ones.
#
# usage: tests/slow/power.sh [BOOTS] [SEED] [FLAVOUR]
#
# Boots 200 times unless told otherwise, some ten seconds each; prints a row for each boot, and the sums. Exits with 1 at the
# first boot after which something is not as it was; what there was then lies in target/power.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
boots=${1:-200}
seed=${2:-$(date +%s)}
flavour=${3:-6.12}
name=power
. "$here/tests/slow/guest.sh"
machine=
trap '[ -z "$machine" ] || kill -9 "$machine" 2>/dev/null; rm -rf "$work"' EXIT
need busybox-static kmod xz-utils e2fsprogs python3

tree=$work/tree
tree "$tree" "$here/tests/slow/power-guest.sh"
modules "$flavour" "$tree" virtio_pci virtio_blk crc32c_generic crc32c_cryptoapi ext4
mkdir -p "$tree/etc/default/grub.d" "$tree/etc/grub.d" "$tree/var/lib/onset" "$tree/boot" "$tree/usr/bin" "$tree/usr/sbin"
script() { mkdir -p "$(dirname "$1")" && { echo '#!/bin/sh' && cat; } >"$1" && chmod 755 "$1"; }
script "$tree/usr/sbin/update-grub" <<'END'
set -e
for part in /etc/default/grub.d/*.cfg; do . "$part"; done
for part in /etc/grub.d/*; do if [ -x "$part" ]; then "$part"; fi; done >/boot/grub/grub.cfg.new
mv /boot/grub/grub.cfg.new /boot/grub/grub.cfg
END
script "$tree/usr/sbin/grub-reboot" <<'END'
exec /usr/bin/grub-editenv - set "next_entry=$1"
END
# As the real one it rewrites one block in its place, and syncs it.
script "$tree/usr/bin/grub-editenv" <<'END'
set -e
block=/boot/grub/grubenv
held=$(grep -v '^#' "$block" || true)
case $2 in
list) echo "$held"; exit ;;
set) held=$3 ;;
unset) held= ;;
esac
{ echo "# GRUB Environment Block"; [ -z "$held" ] || echo "$held"; } >/tmp/block
head -c $((1024 - $(stat -c %s /tmp/block))) /dev/zero | tr '\0' '#' >>/tmp/block
dd if=/tmp/block of="$block" bs=1024 conv=notrunc,fsync 2>/dev/null
END
printf '#!/bin/sh\n# of somebody else\n' >"$tree/foreign"

disk=$work/disk
mkdir -p "$disk/root/var/lib/onset" "$disk/root/etc/default/grub.d" "$disk/root/etc/grub.d" "$disk/root/boot/grub"
echo "GRUB_TIMEOUT=1" >"$disk/root/etc/default/grub.d/other.cfg"
script "$disk/root/etc/grub.d/10_linux" <<'END'
echo "menuentry '${GRUB_DISTRIBUTOR:-Debian} GNU/Linux' {"
echo "	linux /vmlinuz root=/dev/vda ro $GRUB_CMDLINE_LINUX_DEFAULT"
echo "}"
END
printf "menuentry 'Debian GNU/Linux' {\n\tlinux /vmlinuz root=/dev/vda ro \n}\n" >"$disk/root/boot/grub/grub.cfg"
{ echo "# GRUB Environment Block" && head -c 999 /dev/zero | tr '\0' '#'; } >"$disk/root/boot/grub/grubenv"
(cd "$disk/root" && find etc/default/grub.d etc/grub.d boot/grub ! -type d | LC_ALL=C sort | while read -r file; do
	stat -c '%n %a' "$file" && sha256sum "$file"
done) >"$tree/reference"
cp -r "$disk/root/boot" "$disk/boot" && rm -r "$disk/root/boot"
mke2fs -q -F -t ext4 -E lazy_itable_init=0,lazy_journal_init=0 -d "$disk/root" "$disk/vda" 32M
mke2fs -q -F -t ext4 -E lazy_itable_init=0,lazy_journal_init=0 -d "$disk/boot" "$disk/vdb" 16M
image "$tree" "$work/image"

# A number below $1, from the seed.
drawn=0
draw() {
	drawn=$((drawn + 1))
	number=$(printf '%s %s' "$seed" "$drawn" | cksum)
	number=$((${number%% *} % $1))
}

# boot N ROUNDS [STEP DELAY]: boots; cuts the power so many milliseconds after the guest has begun with the step.
boot() {
	for each in vda vdb; do
		cp --sparse=always "$disk/$each" "$work/$each"
		rm -f "$work/$each.log" && : >"$work/$each.log"
	done
	rm -f "$work/serial" && mkfifo "$work/serial"
	drive() {
		echo "-blockdev driver=blklogwrites,node-name=$1,file.driver=file,file.filename=$work/$1,file.cache.no-flush=on,log.driver=file,log.filename=$work/$1.log,log.cache.no-flush=on,log-super-update-interval=1 -device virtio-blk-pci,drive=$1,discard=off,write-zeroes=off"
	}
	# shellcheck disable=SC2046,SC2086
	machine $(drive vda) $(drive vdb) -smp 2 -m 256 -no-reboot -serial stdio -kernel "$cache/$flavour/vmlinuz" -initrd "$work/image" \
		-append "$words power.boot=$1 power.rounds=$2" <"/dev/null" >"$work/serial" 2>"$work/qemu" &
	machine=$!
	: >"$work/said"
	while IFS= read -r line; do
		echo "$line" | tr -d '\r' >>"$work/said"
		case $line in
		"@at ${3:-none}"?)
			if [ "$machine" ]; then
				sleep "$(printf '%d.%03d' $(($4 / 1000)) $(($4 % 1000)))"
				kill -9 "$machine" && wait "$machine" 2>/dev/null || true
				machine=
			fi
			;;
		esac
	done <"$work/serial"
	[ -z "$machine" ] || wait "$machine" || { cat "$work/qemu"; die "QEMU failed"; }
	machine=
	grep -q '^@at' "$work/said" || { cat "$work/said" "$work/qemu"; die "the guest did not come up"; }
	for each in vda vdb; do
		draw 1000000
		python3 "$here/tests/slow/cut.py" "$disk/$each" "$work/$each.log" "$number"
	done >"$work/cut"
	cp "$disk/vda" "$work/before.vda" && cp "$disk/vdb" "$work/before.vdb"
}

keep() {
	rm -rf "$here/target/power" && mkdir -p "$here/target/power"
	cp "$work/said" "$work/said.before" "$disk/vda" "$disk/vdb" "$here/target/power/" 2>/dev/null || true
	cat "$work/said"
	die "boot $1: something is not as it was (seed $seed); see target/power"
}

echo "power: seed $seed, $boots boots of $flavour"
: >"$work/sums"
at=0
while [ "$at" -lt "$boots" ]; do
	at=$((at + 1))
	draw 8
	case $number in
	0 | 1 | 2) step=first range=600 ;;
	3) step=apply range=2500 ;;
	4) step=again range=1500 ;;
	5) step=disturb range=400 ;;
	*) step=undo range=1200 ;;
	esac
	draw "$range"
	delay=$number
	boot "$at" 100 "$step" "$delay"
	last=$(sed -n 's/^@at //p' "$work/said" | tail -n 1)
	! grep -q '^@FAULT' "$work/said" || keep "$at"
	printf '%4d  cut in %-8s after %4d ms  writes, unflushed, lost, torn: %s\n' "$at" "$last" "$delay" "$(tr '\n' ';' <"$work/cut")"
	{ echo "@cut $last" && cat "$work/said" && sed 's/^/@disk /' "$work/cut"; } >>"$work/sums"
	mv "$work/said" "$work/said.before"
done
boot $((at + 1)) 1
! grep -q '^@FAULT' "$work/said" || keep "$((at + 1))"
grep -q '^@at end' "$work/said" || die "the last boot did not come to its end"
cat "$work/said" >>"$work/sums"

count() { grep -c "$1" "$work/sums" || true; }
echo "power: $boots cuts: $(for step in first apply again disturb undo; do printf '%s in %s, ' "$(count "^@cut $step")" "$step"; done) 0 faults"
echo "power: undos after a cut: $(count '^@undo') with $(count 'changes of an earlier boot') that found changes of the boot before, $(count 'half a record') half a record"
echo "power: all as it was: $(count '^@right'); all but what somebody else had changed: $(count '^@left') (values $(count '^@left.*value'), files $(count '^@left.*file'), of these not said by the same undo $(count '^@unsaid'))"
awk '/^@disk/ { w += $2; u += $3; l += $4; t += $5 } END { print "power: writes", w ", not flushed", u ", lost", l ", torn", t }' "$work/sums"
