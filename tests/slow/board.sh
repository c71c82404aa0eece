#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The driver on a board that is no PC: builds it for 64-bit ARM, and runs it in QEMU's board `virt`, which has a GPIO chip
# (PL061) whose line 3 is a button. An overlay of the device tree gives the driver that line as trigger and the others as
# answers. Checks that every responder toggles its line at each trigger, also the line that is active when low.
#
# It installs a cross compiler and QEMU for ARM, and takes Debian's kernel for ARM with package lists of its own, so that
# the machine's lists do not change.
#
# usage: tests/slow/board.sh
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
die() { echo "board: $*" >&2; exit 1; }

mirror=$("$here/setup/mirror.sh")
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
for package in gcc-aarch64-linux-gnu libc6-dev-arm64-cross device-tree-compiler python3; do
	dpkg -s "$package" >/dev/null 2>&1 || as_root apt-get install -y -qq --no-install-recommends "$package" >/dev/null
done
# Of the same version as the rig's QEMU, of which it shares packages.
version=$(dpkg-query -W -f '${Version}' qemu-system-common)
command -v qemu-system-aarch64 >/dev/null ||
	as_root apt-get install -y -qq --no-install-recommends "qemu-system-arm=$version" >/dev/null

mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/root"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$work/sources"
cat >"$work/apt.conf" <<END
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; };
Dir::State::Lists "$work/lists";
Dir::Cache "$work";
Dir::Etc::SourceList "$work/sources";
Dir::Etc::SourceParts "/dev/null";
APT::Sandbox::User "root";
END
cd "$work"
export APT_CONFIG="$work/apt.conf"
apt-get update -qq
kernel=$(apt-cache depends linux-image-arm64:arm64 | sed -n 's/.*Depends: linux-image-\([0-9.a-z+-]*-arm64\).*/\1/p' | head -n 1)
[ -n "$kernel" ] || die "the archive has no kernel for arm64"
kbuild=$(apt-cache depends "linux-headers-$kernel:arm64" | sed -n 's/.*Depends: \(linux-kbuild-[0-9a-z.+-]*\).*/\1/p' | head -n 1)
apt-get download -qq "linux-image-$kernel:arm64" "linux-headers-$kernel:arm64" "linux-headers-${kernel%-arm64}-common" "$kbuild:amd64"
for package in *.deb; do dpkg-deb -x "$package" root; done

headers="$work/root/usr/src/linux-headers-$kernel"
sed -i "s#include /usr/src#include $work/root/usr/src#" "$headers/Makefile"
cp -r "$here/driver" driver
make -s -C "$headers" M="$work/driver" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- CONFIG_DEBUG_INFO_BTF_MODULES= modules
mkdir image
aarch64-linux-gnu-strip -g -o image/onset_port.ko driver/onset_port.ko
aarch64-linux-gnu-gcc -static -O2 -Wall -I "$here/driver" -o image/init "$here/tests/slow/board.c"

# The board's own tree, without the button's driver; and the overlay that is shipped, with this chip and its lines.
board="qemu-system-aarch64 -machine virt -cpu cortex-a53 -m 512 -display none -nic none -no-reboot"
$board -machine dumpdtb=board.dtb >/dev/null 2>&1
chip=$(fdtget -t x board.dtb /pl061@9030000 phandle)
fdtput -r board.dtb /gpio-keys
of() { for line in "$@"; do printf '<0x%s %s %s>, ' "$chip" "${line%:*}" "${line#*:}"; done | sed 's/, $//'; }
sed -e "s/trigger-gpios = .*/trigger-gpios = $(of 3:0);/" \
	-e "s/answer-gpios = .*/answer-gpios = $(of 0:0 1:1 2:0 4:0 5:0 6:0 7:0);/" "$here/examples/gpio-lines.dts" >lines.dts
dtc -q -@ -I dts -O dtb -o lines.dtbo lines.dts
fdtoverlay -i board.dtb -o whole.dtb lines.dtbo

python3 - <<'END'
import os
with open("image.cpio", "wb") as out:
    for number, name in enumerate(sorted(os.listdir("image")) + ["TRAILER!!!"], 1):
        path = os.path.join("image", name)
        data = open(path, "rb").read() if os.path.exists(path) else b""
        fields = (number, 0o100755, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        out.write(head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4))
END

mkfifo monitor
: >console
timeout 300 $board -dtb whole.dtb -kernel "root/boot/vmlinuz-$kernel" -initrd image.cpio -serial file:console -monitor stdio \
	-append "console=ttyAMA0 loglevel=4 panic=-1" <monitor >/dev/null &
machine=$!
exec 3>monitor
pressed=0
while kill -0 "$machine" 2>/dev/null; do
	asked=$(grep -c '^trigger ' console || true)
	if [ "$asked" -gt "$pressed" ]; then
		pressed=$asked
		echo system_powerdown >&3
	fi
	sleep 0.2
done
exec 3>&-
wait "$machine" || true
grep -q 'all done' console || { cat console; die "the board did not come to its end"; }

# Each line in the order of the stretches that the console has: low and high in turn, or the contrary.
grep -o 'onset [a-z_]*' console | sort -u | sed 's/onset //' | grep -v trigger >responders
[ "$(wc -l <responders)" = 7 ] || { cat console; die "not seven responders have a line"; }
while read -r responder; do
	levels=$(sed -n "s/.*onset $responder *).* out \(..\).*/\1/p" console | tr '\n' ' ')
	case $levels in
	"lo hi lo hi lo " | "hi lo hi lo hi ") echo "$responder: $levels" ;;
	*) cat console; die "$responder: $levels: it did not answer each of four triggers" ;;
	esac
done <responders
echo "board: $(wc -l <responders) responders answered each trigger on Linux $kernel"
