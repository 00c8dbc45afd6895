//! Go's sort algorithm. It is not stable, so the resulting order of equal elements depends on the algorithm.
//!
//! Source: Go `sort/zsortfunc.go` (`pdqsort_func`), `sort/sort.go` (`xorshift`, `nextPowerOfTwo`).

/// Sorts `items` by `less`, which need not be a strict order.
pub(super) fn sort<T>(items: &mut [T], less: impl FnMut(&T, &T) -> bool) {
    let len = items.len();
    let mut sorter = Sorter { items, less };
    sorter.sort(0, len, n_bits(len));
}

fn n_bits(len: usize) -> u32 {
    usize::BITS - len.leading_zeros()
}

/// Ranges of at most this length are sorted by insertion.
const MAX_INSERTION: usize = 12;

/// Minimum length of ranges for which the pivot is a median of medians, and in which a few misplaced elements are
/// corrected by shifting them.
const LONG: usize = 50;

/// Maximum number of swaps while choosing a pivot. At this number, the elements are assumed to be in reverse order.
const MAX_SWAPS: u32 = 12;

/// Maximum number of adjacent pairs in the wrong order that are corrected by shifting.
const MAX_STEPS: u32 = 5;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hint {
    Unknown,
    Increasing,
    Decreasing,
}

struct Sorter<'a, T, F> {
    items: &'a mut [T],
    less: F,
}

impl<T, F: FnMut(&T, &T) -> bool> Sorter<'_, T, F> {
    fn less(&mut self, i: usize, j: usize) -> bool {
        match (self.items.get(i), self.items.get(j)) {
            (Some(left), Some(right)) => (self.less)(left, right),
            _ => false,
        }
    }

    fn swap(&mut self, i: usize, j: usize) {
        if i < self.items.len() && j < self.items.len() {
            self.items.swap(i, j);
        }
    }

    fn sort(&mut self, mut begin: usize, mut end: usize, mut limit: u32) {
        let (mut was_balanced, mut was_partitioned) = (true, true);
        loop {
            let len = end - begin;
            if len <= MAX_INSERTION {
                self.insertion_sort(begin, end);
                return;
            }
            if limit == 0 {
                self.heap_sort(begin, end);
                return;
            }
            if !was_balanced {
                self.break_patterns(begin, end);
                limit -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(begin, end);
            if hint == Hint::Decreasing {
                if let Some(range) = self.items.get_mut(begin..end) {
                    range.reverse();
                }
                pivot = (end - 1) - (pivot - begin);
                hint = Hint::Increasing;
            }
            if was_balanced
                && was_partitioned
                && hint == Hint::Increasing
                && self.partial_insertion_sort(begin, end)
            {
                return;
            }
            if begin > 0 && !self.less(begin - 1, pivot) {
                begin = self.partition_equal(begin, end, pivot);
                continue;
            }
            let (middle, already_partitioned) = self.partition(begin, end, pivot);
            was_partitioned = already_partitioned;
            let (left_len, right_len) = (middle - begin, end - middle);
            was_balanced = left_len.min(right_len) >= len / 8;
            if left_len < right_len {
                self.sort(begin, middle, limit);
                begin = middle + 1;
            } else {
                self.sort(middle + 1, end, limit);
                end = middle;
            }
        }
    }

    fn insertion_sort(&mut self, begin: usize, end: usize) {
        for i in begin + 1..end {
            let mut j = i;
            while j > begin && self.less(j, j - 1) {
                self.swap(j, j - 1);
                j -= 1;
            }
        }
    }

    fn heap_sort(&mut self, first: usize, end: usize) {
        let len = end - first;
        for root in (0..=(len - 1) / 2).rev() {
            self.sift_down(root, len, first);
        }
        for last in (0..len).rev() {
            self.swap(first, first + last);
            self.sift_down(0, last, first);
        }
    }

    fn sift_down(&mut self, mut root: usize, end: usize, first: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= end {
                return;
            }
            if child + 1 < end && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.swap(first + root, first + child);
            root = child;
        }
    }

    /// Partitions the range around the pivot. Returns the new index of the pivot, and true if the range was already
    /// partitioned.
    fn partition(&mut self, begin: usize, end: usize, pivot: usize) -> (usize, bool) {
        self.swap(begin, pivot);
        let (mut i, mut j) = (begin + 1, end - 1);
        let mut already_partitioned = true;
        loop {
            while i <= j && self.less(i, begin) {
                i += 1;
            }
            while i <= j && !self.less(j, begin) {
                j -= 1;
            }
            if i > j {
                break;
            }
            already_partitioned = false;
            self.swap(i, j);
            i += 1;
            j -= 1;
        }
        self.swap(j, begin);
        (j, already_partitioned)
    }

    /// Moves elements equal to the pivot before greater elements. The range must contain no element that is less than
    /// the pivot.
    fn partition_equal(&mut self, begin: usize, end: usize, pivot: usize) -> usize {
        self.swap(begin, pivot);
        let (mut i, mut j) = (begin + 1, end - 1);
        loop {
            while i <= j && !self.less(begin, i) {
                i += 1;
            }
            while i <= j && self.less(begin, j) {
                j -= 1;
            }
            if i > j {
                return i;
            }
            self.swap(i, j);
            i += 1;
            j -= 1;
        }
    }

    fn partial_insertion_sort(&mut self, begin: usize, end: usize) -> bool {
        let mut i = begin + 1;
        for _ in 0..MAX_STEPS {
            while i < end && !self.less(i, i - 1) {
                i += 1;
            }
            if i == end {
                return true;
            }
            if end - begin < LONG {
                return false;
            }
            self.swap(i, i - 1);
            if i - begin >= 2 {
                // As in Go, continues down to the first element of the slice rather than of the range.
                let mut j = i - 1;
                while j >= 1 && self.less(j, j - 1) {
                    self.swap(j, j - 1);
                    j -= 1;
                }
            }
            if end - i >= 2 {
                let mut j = i + 1;
                while j < end && self.less(j, j - 1) {
                    self.swap(j, j - 1);
                    j += 1;
                }
            }
        }
        false
    }

    fn break_patterns(&mut self, begin: usize, end: usize) {
        let len = end - begin;
        if len < 8 {
            return;
        }
        let mut random = len as u64;
        let mask = (1_u64 << n_bits(len)) - 1;
        let middle = begin + len / 4 * 2;
        for index in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = usize::try_from(random & mask).unwrap_or_default();
            let other = if other >= len { other - len } else { other };
            self.swap(index, begin + other);
        }
    }

    fn choose_pivot(&mut self, begin: usize, end: usize) -> (usize, Hint) {
        let len = end - begin;
        let mut swaps = 0;
        let [mut i, mut j, mut k] = [1, 2, 3].map(|n| begin + len / 4 * n);
        if len >= 8 {
            if len >= LONG {
                i = self.median([i - 1, i, i + 1], &mut swaps);
                j = self.median([j - 1, j, j + 1], &mut swaps);
                k = self.median([k - 1, k, k + 1], &mut swaps);
            }
            j = self.median([i, j, k], &mut swaps);
        }
        let hint = match swaps {
            0 => Hint::Increasing,
            MAX_SWAPS => Hint::Decreasing,
            _ => Hint::Unknown,
        };
        (j, hint)
    }

    fn median(&mut self, [a, b, c]: [usize; 3], swaps: &mut u32) -> usize {
        let (a, b) = self.ordered(a, b, swaps);
        let (b, _) = self.ordered(b, c, swaps);
        self.ordered(a, b, swaps).1
    }

    fn ordered(&mut self, a: usize, b: usize, swaps: &mut u32) -> (usize, usize) {
        if self.less(b, a) {
            *swaps += 1;
            (b, a)
        } else {
            (a, b)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a hash of the order of `items`.
    fn digest(items: &[usize]) -> u64 {
        items.iter().fold(14_695_981_039_346_656_037, |hash, item| {
            (hash ^ *item as u64).wrapping_mul(1_099_511_628_211)
        })
    }

    /// Sorts the numbers below `len` and compares the digest with that of Go's order.
    #[track_caller]
    fn check(len: usize, mut less: impl FnMut(usize, usize) -> bool, expected: u64) {
        let mut items: Vec<usize> = (0..len).collect();
        sort(&mut items, |a, b| less(*a, *b));
        assert_eq!(digest(&items), expected, "{len}");
    }

    #[test]
    fn equal_elements_are_sorted_as_in_go() {
        for (len, modulus, factor, expected) in [
            (13, 3, 1, 0xc495_6863_6c3f_027b),
            (40, 5, 7, 0x0521_1b0a_65ed_2a2d),
            (100, 3, 1, 0xce43_fdc6_75e2_d46b),
            (100, 10, 37, 0x508d_c21d_3cad_33d3),
            (500, 7, 13, 0x90f8_9a36_ed92_be85),
            (1000, 1000, 617, 0xb566_9e68_1282_ad0d),
            (1000, 50, 999, 0xd105_1273_9209_3d75),
            (5000, 2, 3, 0x7fc0_7f35_c49d_1909),
            (5000, 5000, 4999, 0x6b9d_063f_beb2_1e4d),
            (200, 1, 1, 0x43cf_a802_3695_d3bd),
        ] {
            let key = |n: usize| n * factor % modulus;
            check(len, |a, b| key(a) < key(b), expected);
        }
        for (len, expected) in [
            (64, 0xdcc0_4712_497c_d339),
            (300, 0xa3ff_389c_a0b0_6341),
            (2000, 0x95fc_ded1_b9f2_6277),
        ] {
            let key = |n: usize| if n < len / 2 { n / 3 } else { (len - n) / 3 };
            check(len, |a, b| key(a) < key(b), expected);
        }
    }

    #[test]
    fn sort_with_inconsistent_comparison_terminates() {
        let less = |a: usize, b: usize| (a * a * 31) % 17 < (b * b * 7) % 19;
        check(300, less, 0x6817_6ca1_5050_4a95);
    }
}
