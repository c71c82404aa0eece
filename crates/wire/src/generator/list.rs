// SPDX-License-Identifier: GPL-2.0-or-later
//! Lists of a message, which lie where they came from: bytes of a frame, or values of whoever sends them.

use super::fields::{Put, Take};

/// What a message has a list of.
pub trait Item: Copy {
    /// Bytes of one.
    const BYTES: usize;
    /// The most that a message has.
    const MOST: usize;

    /// Whether the bytes can say it.
    fn fits(&self) -> bool;
    #[doc(hidden)]
    fn put(&self, to: &mut impl Put);
    #[doc(hidden)]
    fn take(from: &mut Take<'_>) -> Option<Self>;
}

/// A list that a message cannot carry: it has more items than [`Item::MOST`], or one that the bytes cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit;

impl core::fmt::Display for Misfit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a message has no room for these")
    }
}

impl core::error::Error for Misfit {}

/// At most [`Item::MOST`] items.
#[derive(Clone, Copy, Debug)]
pub struct List<'a, T>(From<'a, T>);

#[derive(Clone, Copy, Debug)]
enum From<'a, T> {
    Values(&'a [T]),
    Bytes(&'a [u8]),
}

impl<'a, T: Item> List<'a, T> {
    /// Of nothing.
    pub const EMPTY: List<'a, T> = List(From::Values(&[]));

    /// Of these values.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn new(values: &'a [T]) -> Result<List<'a, T>, Misfit> {
        let fit = values.len() <= T::MOST && values.iter().all(Item::fits);
        if fit { Ok(List(From::Values(values))) } else { Err(Misfit) }
    }

    /// Of these bytes; `None` where they are none of such a list.
    pub(super) fn of(bytes: &'a [u8]) -> Option<List<'a, T>> {
        let count = bytes.len() / T::BYTES;
        let whole = bytes.len().is_multiple_of(T::BYTES) && count <= T::MOST;
        let list = List(From::Bytes(bytes));
        (whole && list.iter().count() == count).then_some(list)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self.0 {
            From::Values(values) => values.len(),
            From::Bytes(bytes) => bytes.len() / T::BYTES,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each, in its order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<'a, T> {
        let (values, bytes): (&[T], &[u8]) = match self.0 {
            From::Values(values) => (values, &[]),
            From::Bytes(bytes) => (&[], bytes),
        };
        let read = bytes.chunks_exact(T::BYTES).filter_map(|item| T::take(&mut Take::new(item)));
        values.iter().copied().chain(read)
    }

    pub(super) fn put(&self, to: &mut impl Put) {
        self.iter().for_each(|item| item.put(to));
    }
}

/// Lists are the same where their items are, wherever these lie.
impl<T: Item + PartialEq> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: Item + Eq> Eq for List<'_, T> {}
