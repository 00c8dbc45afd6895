//! Source of an expression: lines, columns and snippets.
//!
//! Offsets count code points, as in cel-go. [`SourceMap`] also converts byte offsets.
//!
//! Source: cel-go `common/source.go` (`sourceImpl`), `common/location.go`.

use super::interrupt::checkpoint_of;

/// Number of bytes traversed per checkpoint of an [`Interrupt`](crate::interrupt::Interrupt).
const BYTES_OF_CHECKPOINT: usize = 1024;

/// A location in the source of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The line, from 1, or -1 if there is no location.
    pub line: i32,
    /// The column in code points, from 0, or -1 if there is no location.
    pub column: i32,
}

impl Location {
    /// The location of an error that concerns the whole expression.
    ///
    /// Source: cel-go `common/location.go`, `NoLocation`.
    pub const NONE: Self = Self {
        line: -1,
        column: -1,
    };
}

/// Index of the lines of a source.
#[derive(Clone, Debug)]
pub struct SourceMap {
    /// The offset of the first code point of each line, from the second line on.
    line_starts: Vec<u32>,
    /// The byte offset of each code point. `None` for an ASCII source.
    byte_offsets: Option<Vec<u32>>,
    n_code_points: u32,
    n_bytes: u32,
}

impl SourceMap {
    /// Indexes a source.
    #[must_use]
    pub fn new(text: &str) -> Self {
        checkpoint_of(text.len() / BYTES_OF_CHECKPOINT);
        let mut line_starts = Vec::new();
        let mut n_code_points = 0;
        for c in text.chars() {
            n_code_points += 1;
            if c == '\n' {
                line_starts.push(n_code_points);
            }
        }
        let byte_offsets = (!text.is_ascii()).then(|| {
            text.char_indices()
                .map(|(n, _)| u32::try_from(n).unwrap_or(u32::MAX))
                .collect()
        });
        Self {
            line_starts,
            byte_offsets,
            n_code_points,
            n_bytes: u32::try_from(text.len()).unwrap_or(u32::MAX),
        }
    }

    /// Returns the length in code points.
    #[must_use]
    pub fn n_code_points(&self) -> u32 {
        self.n_code_points
    }

    /// Converts the byte offset `byte` to an offset in code points.
    #[must_use]
    pub fn offset_of_byte(&self, byte: u32) -> u32 {
        match &self.byte_offsets {
            None => byte.min(self.n_code_points),
            Some(offsets) => {
                u32::try_from(offsets.partition_point(|&start| start < byte)).unwrap_or(u32::MAX)
            }
        }
    }

    /// Returns the location of an offset in code points. Offsets beyond the end are on the last line.
    #[must_use]
    pub fn location(&self, offset: u32) -> Location {
        let n_before = self.line_starts.partition_point(|&start| start <= offset);
        let line_start = n_before
            .checked_sub(1)
            .and_then(|last| self.line_starts.get(last))
            .copied()
            .unwrap_or(0);
        Location {
            line: i32::try_from(n_before + 1).unwrap_or(i32::MAX),
            column: i32::try_from(offset.saturating_sub(line_start)).unwrap_or(i32::MAX),
        }
    }

    /// Returns the byte offset of `location`. `None` for [`Location::NONE`]. A location beyond the end of the source
    /// has the offset of the end.
    #[must_use]
    pub fn byte(&self, location: Location) -> Option<usize> {
        let line = usize::try_from(location.line).ok()?.checked_sub(1)?;
        let column = u32::try_from(location.column).ok()?;
        let line_start = match line.checked_sub(1) {
            None => 0,
            Some(n) => {
                let start = self.line_starts.get(n).or(self.line_starts.last());
                start.copied().unwrap_or(0)
            }
        };
        let offset = line_start.saturating_add(column);
        let byte = match &self.byte_offsets {
            None => offset.min(self.n_code_points),
            Some(offsets) => {
                let byte = offsets.get(usize::try_from(offset).ok()?);
                byte.copied().unwrap_or(self.n_bytes)
            }
        };
        usize::try_from(byte).ok()
    }

    /// Returns the line with the number `line`, from 1, without its line break. `None` if there is no such line.
    #[must_use]
    pub fn snippet<'a>(&self, text: &'a str, line: i32) -> Option<&'a str> {
        if text.is_empty() {
            return None;
        }
        checkpoint_of(text.len() / BYTES_OF_CHECKPOINT);
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        text.split('\n').nth(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, offset: u32, line: i32, column: i32) {
        assert_eq!(
            SourceMap::new(text).location(offset),
            Location { line, column }
        );
    }

    #[test]
    fn columns_of_locations_count_code_points() {
        check("a + b", 2, 1, 2);
        check("a\n+ b", 2, 2, 0);
        check("'é'\n + x", 5, 2, 1);
        check("a", 9, 1, 9);
    }

    #[test]
    fn location_is_converted_to_byte_offset() {
        let map = SourceMap::new("'é'\n + x");
        let byte = |line, column| map.byte(Location { line, column });
        assert_eq!(byte(1, 2), Some(3));
        assert_eq!(byte(2, 3), Some(8));
        assert_eq!(byte(2, 9), Some(9));
        assert_eq!(byte(7, 1), Some(6));
        assert_eq!(byte(1, -1), None);
        assert_eq!(map.byte(Location::NONE), None);
    }

    #[test]
    fn byte_offset_is_converted_to_code_point_offset() {
        let map = SourceMap::new("'é' + x");
        assert_eq!(map.offset_of_byte(0), 0);
        assert_eq!(map.offset_of_byte(5), 4);
    }
}
