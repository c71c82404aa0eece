#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Prints the mirror that the machine uses for Debian itself.
set -eu

mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(SITE)' 2>/dev/null |
	awk '$1 == "Debian" && $2 == "main" && $3 !~ /security/ { print $3; exit }')
[ -n "$mirror" ] || {
	echo "setup: cannot tell the Debian mirror from apt's configuration" >&2
	exit 1
}
echo "$mirror"
