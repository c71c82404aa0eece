// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds members of the kernel's structures, by the kernel's own type information (Documentation/bpf/btf.rst).

use crate::little_endian::{u16_at, u32_at};

/// The kinds of types that this module looks at.
const INT: u32 = 1;
const POINTER: u32 = 2;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const VARIABLE: u32 = 14;
const TYPE_TAG: u32 = 18;
/// The most types that are followed inside each other or behind names. Kernels have some five. Damaged information may
/// go in circles.
const DEPTH_MAX: u32 = 32;
/// The most members that are looked at for one offset. The largest structures of kernels have some hundred members,
/// with those of nameless structures inside them. In damaged information each structure may hold the next one thousands
/// of times.
const MEMBERS_MAX: u32 = 1 << 16;
/// The bytes of a `struct btf_type`, and below those of a `struct btf_member`.
const TYPE: usize = 12;
const MEMBER: usize = 12;

/// The kernel's type information.
#[derive(Clone, Debug)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// The place in `types` at which each type begins. The type with number 1 comes first; 0 is `void`.
    starts: Vec<u32>,
}

/// The record of one type.
#[derive(Clone, Copy)]
struct Type {
    at: usize,
    name: u32,
    info: u32,
    reference: u32,
}

impl Type {
    fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn members(self) -> usize {
        (self.info & 0xffff) as usize
    }

    fn has_bitfields(self) -> bool {
        self.info >> 31 != 0
    }
}

impl<'a> Btf<'a> {
    /// Reads the section `.BTF`. If the section cannot be read, the error says what is wrong with it.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Btf<'a>, &'static str> {
        if u16_at(bytes, 0) != Some(0xeb9f) || bytes.get(2) != Some(&1) {
            return Err("its type information (.BTF) is of an unknown version");
        }
        let part = |field: usize| {
            let from =
                bytes.get(u32_at(bytes, 4)? as usize..)?.get(u32_at(bytes, field)? as usize..)?;
            from.get(..u32_at(bytes, field + 4)? as usize)
        };
        let damaged = "its type information (.BTF) is cut short";
        let (types, strings) = part(8).zip(part(16)).ok_or(damaged)?;
        let mut btf = Btf { types, strings, starts: Vec::new() };
        let mut at = 0;
        while at < types.len() {
            let start = u32::try_from(at).map_err(|_| damaged)?;
            let found = btf.type_at(at).ok_or(damaged)?;
            btf.starts.push(start);
            at += TYPE + trailer(found).ok_or("its type information (.BTF) has unknown kinds")?;
        }
        Ok(btf)
    }

    /// The bytes from the beginning of `struct structure` to its member `path`. A path has names with dots between
    /// them. As in C, it passes over structures and unions without names. `None` if there is no such structure or
    /// member, or if the member does not begin at a byte.
    pub fn offset(&self, structure: &str, path: &str) -> Option<u64> {
        let is_wanted = |t: &Type| t.kind() == STRUCT && self.is_named(t.name, structure);
        let types = self.starts.iter().filter_map(|at| self.type_at(*at as usize));
        let mut inside = types.filter(is_wanted).find(|t| t.members() > 0)?;
        let mut bits = 0;
        let mut left = MEMBERS_MAX;
        for (n, name) in path.split('.').enumerate() {
            if n > 0 {
                inside = self.structure(inside)?;
            }
            let (member, offset) = self.member(inside, name, 0, &mut left)?;
            bits += offset;
            inside = member;
        }
        (bits % 8 == 0).then_some(bits / 8)
    }

    /// The bytes of the variable `name`, which is a number or a pointer. The types tell only of each CPU's variables.
    pub fn size_of_variable(&self, name: &str) -> Option<u64> {
        let types = self.starts.iter().filter_map(|at| self.type_at(*at as usize));
        let variable =
            types.filter(|t| t.kind() == VARIABLE).find(|t| self.is_named(t.name, name))?;
        let of = self.unqualified(self.by_number(variable.reference)?)?;
        match of.kind() {
            // The record of a number has its size in the place in which other records have a type.
            INT => Some(of.reference.into()),
            POINTER => Some(8),
            _ => None,
        }
    }

    fn type_at(&self, at: usize) -> Option<Type> {
        let field = |n: usize| u32_at(self.types, at + n);
        Some(Type { at, name: field(0)?, info: field(4)?, reference: field(8)? })
    }

    fn by_number(&self, number: u32) -> Option<Type> {
        self.type_at(*self.starts.get((number as usize).checked_sub(1)?)? as usize)
    }

    /// Whether the name at `at` is `name`. Damaged information may lack the end of a name, so this reads no further.
    fn is_named(&self, at: u32, name: &str) -> bool {
        let rest = self.strings.get(at as usize..).and_then(|s| s.strip_prefix(name.as_bytes()));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The structure or union behind names and qualifiers such as `const`.
    fn structure(&self, of: Type) -> Option<Type> {
        self.unqualified(of).filter(|of| matches!(of.kind(), STRUCT | UNION))
    }

    /// The type behind names and qualifiers.
    fn unqualified(&self, mut of: Type) -> Option<Type> {
        for _ in 0..DEPTH_MAX {
            match of.kind() {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => {
                    of = self.by_number(of.reference)?;
                }
                _ => return Some(of),
            }
        }
        None
    }

    /// The type of a member, and the number of bits of `of` before the member. `None` also if the search would look at
    /// more than `left` members.
    fn member(&self, of: Type, name: &str, depth: u32, left: &mut u32) -> Option<(Type, u64)> {
        if depth > DEPTH_MAX || name.is_empty() {
            return None;
        }
        for n in 0..of.members() {
            *left = left.checked_sub(1)?;
            let at = of.at + TYPE + n * MEMBER;
            let field = |n: usize| u32_at(self.types, at + n);
            let offset = field(8)?;
            // In a structure with bit-fields, the upper byte is the width.
            let bits = u64::from(if of.has_bitfields() { offset & 0xff_ffff } else { offset });
            let found = field(0)?;
            let member = self.by_number(field(4)?)?;
            if self.is_named(found, name) {
                return Some((member, bits));
            }
            if self.is_named(found, "")
                && let Some(inner) = self.structure(member)
                && let Some((member, inner_bits)) = self.member(inner, name, depth + 1, left)
            {
                return Some((member, bits + inner_bits));
            }
        }
        None
    }
}

/// The number of bytes that follow the record of a type. `None` for an unknown kind.
fn trailer(of: Type) -> Option<usize> {
    // The bytes that follow once, and those for each of the type's `vlen` parts (btf.rst, "Type Encoding").
    let (once, each) = match of.kind() {
        INT | VARIABLE | 17 => (4, 0),
        3 => (12, 0),
        STRUCT | UNION => (0, MEMBER),
        6 | 13 => (0, 8),
        15 | 19 => (0, 12),
        POINTER | 7..=12 | 16 | TYPE_TAG => (0, 0),
        _ => return None,
    };
    Some(once + each * of.members())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct outer { int a; struct inner_t in; union { int x; struct { int y; long z; }; }; int flag:1; };`. Here
    /// `inner_t` is a typedef of a const structure with `int b; int c;`.
    fn example() -> Vec<u8> {
        let strings = b"\0outer\0a\0in\0x\0y\0z\0flag\0inner_t\0b\0c\0int\0";
        let name = |wanted: &str| {
            let strings = std::str::from_utf8(strings).unwrap();
            strings.find(&format!("\0{wanted}\0")).unwrap() as u32 + 1
        };
        let mut types: Vec<u32> = Vec::new();
        types.extend([name("int"), info(1, 0, 0), 4, 32]); // 1
        types.extend([0, info(STRUCT, 2, 0), 8, name("b"), 1, 0, name("c"), 1, 32]); // 2
        types.extend([0, info(CONST, 0, 0), 2]); // 3
        types.extend([name("inner_t"), info(TYPEDEF, 0, 0), 3]); // 4
        types.extend([0, info(STRUCT, 2, 0), 16, name("y"), 1, 0, name("z"), 1, 64]); // 5
        types.extend([0, info(UNION, 2, 0), 16, name("x"), 1, 0, 0, 5, 0]); // 6
        types.extend([name("outer"), info(STRUCT, 4, 1), 32, name("a"), 1, 0, name("in"), 4, 32]);
        types.extend([0, 6, 128, name("flag"), 1, 1 << 24 | 257]); // 7
        section(&types, strings)
    }

    fn info(kind: u32, members: u32, bitfields: u32) -> u32 {
        bitfields << 31 | kind << 24 | members
    }

    fn section(types: &[u32], strings: &[u8]) -> Vec<u8> {
        let length = types.len() as u32 * 4;
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for field in [24, 0, length, length, strings.len() as u32] {
            bytes.extend_from_slice(&u32::to_le_bytes(field));
        }
        types.iter().for_each(|t| bytes.extend_from_slice(&t.to_le_bytes()));
        bytes.extend_from_slice(strings);
        bytes
    }

    #[test]
    fn members_are_found_through_names_qualifiers_and_what_has_no_name() {
        let bytes = example();
        let btf = Btf::parse(&bytes).unwrap();
        let paths = ["a", "in", "in.b", "in.c", "x", "y", "z", "flag", "in.a", "b", ""];
        let found = paths.map(|path| btf.offset("outer", path));
        let at = [0, 4, 4, 8, 16, 16, 24].map(Some);
        assert_eq!(found[..7], at);
        assert_eq!(found[7..], [None; 4]);
        assert_eq!(btf.offset("inner_t", "b"), None);
    }

    #[test]
    fn a_variable_is_as_large_as_the_number_behind_its_names() {
        let strings = b"\0int\0long\0count\0old\0";
        let mut types: Vec<u32> = Vec::new();
        types.extend([1, info(INT, 0, 0), 4, 32]); // 1
        types.extend([5, info(INT, 0, 0), 8, 64]); // 2
        types.extend([0, info(VOLATILE, 0, 0), 2]); // 3
        types.extend([10, info(VARIABLE, 0, 0), 3, 1]); // 4, of a volatile long
        types.extend([16, info(VARIABLE, 0, 0), 1, 1]); // 5
        let bytes = section(&types, strings);
        let btf = Btf::parse(&bytes).unwrap();
        let sizes = ["count", "old", "int", ""].map(|name| btf.size_of_variable(name));
        assert_eq!(sizes, [Some(8), Some(4), None, None]);
    }

    #[test]
    fn information_that_ends_early_is_refused() {
        let whole = example();
        for length in 0..whole.len() {
            assert!(Btf::parse(&whole[..length]).is_err(), "{length}");
        }
    }

    /// Each structure contains the next one three times, without a name: 3^30 members to look at without a limit.
    #[test]
    fn structures_that_multiply_are_given_up() {
        let mut types = Vec::new();
        let name = |n: u32| if n == 1 { 1 } else { 0 };
        for n in 1..=30 {
            types.extend([name(n), info(STRUCT, 3, 0), 8]);
            types.extend([0, n + 1, 0].repeat(3));
        }
        types.extend([0, info(STRUCT, 1, 0), 8, 7, 31, 0]);
        let bytes = section(&types, b"\0outer\0last\0");
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.offset("outer", "last"), Some(0), "the first way leads there");
        assert_eq!(btf.offset("outer", "none"), None);
    }

    #[test]
    fn a_name_that_does_not_end_is_nobodys() {
        let bytes = section(&[1, info(STRUCT, 1, 0), 8, 1, 1, 0], b"\0outer");
        assert_eq!(Btf::parse(&bytes).unwrap().offset("outer", "outer"), None);
        let bytes = section(&[1, info(STRUCT, 1, 0), 8, 1, 1, 0], b"\0outer\0");
        assert_eq!(Btf::parse(&bytes).unwrap().offset("outer", "outer"), Some(0));
    }
}
