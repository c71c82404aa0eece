# SPDX-License-Identifier: GPL-2.0-or-later
# A real C compiler under make -j4.
#
# programs: sh make gcc mkdir rm cat
# programs of the guest: cc1 as
# counters: compile.make
directory=${TMPDIR:-/tmp}/compile
mkdir -p "$directory"
cd "$directory"
cat >unit.c <<'C'
typedef unsigned long word;
struct node { struct node *left, *right; word key, value[4]; };
static word mix(word x) { x ^= x >> 29; x *= 0xbf58476d1ce4e5b9ul; return x ^ x >> 32; }
struct node *insert(struct node *at, struct node *what)
{
	if (!at)
		return what;
	if (what->key < at->key)
		at->left = insert(at->left, what);
	else
		at->right = insert(at->right, what);
	return at;
}
word walk(const struct node *at, int depth)
{
	word sum = mix(depth);
	for (int i = 0; at && i < 4; i++)
		sum += mix(at->value[i] ^ sum) % (at->key | 1);
	return at ? sum ^ walk(at->left, depth + 1) + walk(at->right, depth + 1) : sum;
}
void sort(word *a, int n)
{
	for (int gap = n / 2; gap; gap /= 2)
		for (int i = gap; i < n; i++)
			for (int j = i; j >= gap && a[j - gap] > a[j]; j -= gap) {
				word t = a[j];
				a[j] = a[j - gap];
				a[j - gap] = t;
			}
}
C
cat >Makefile <<'M'
all: 1.o 2.o 3.o 4.o
%.o: unit.c
	gcc -ffreestanding -O1 -c -o $@ unit.c
M
# Freestanding, for there are no headers; without built-in rules, which would remake the Makefile itself.
repeat compile.make make -r -s -B -j4 -C "$directory" &
