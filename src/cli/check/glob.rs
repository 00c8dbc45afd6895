//! Matches paths with patterns as in `.gitignore`: `*` and `?` within a name, `**` for any number of directories.

/// A pattern of paths below a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    /// The components. `**` matches any number of directories.
    names: Vec<String>,
}

impl Glob {
    /// Parses a pattern. A pattern of one component matches at any depth. A longer pattern is relative to the
    /// directory of the configuration file.
    ///
    /// # Errors
    /// Returns the reason if the pattern cannot match anything.
    pub(super) fn new(pattern: &str) -> Result<Self, &'static str> {
        let path = pattern.strip_prefix("./").unwrap_or(pattern);
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Err("is empty");
        }
        if path.starts_with('/') {
            return Err(
                "begins with `/`: paths are relative to the directory of the configuration file",
            );
        }
        if path.starts_with('!') {
            return Err("begins with `!`, but negation is not supported");
        }
        let mut names: Vec<String> = path.split('/').map(str::to_owned).collect();
        if names
            .iter()
            .any(|name| name == ".." || name == "." || name.is_empty())
        {
            return Err("has `.`, `..` or an empty name between two `/`");
        }
        if names.len() == 1 {
            names.insert(0, "**".to_owned());
        }
        Ok(Self { names })
    }

    /// Returns true if the pattern matches the path with these components, or one of its parent directories.
    pub(super) fn matches(&self, path: &[&str]) -> bool {
        // For each component of the pattern, true (open) if it may match the next component of the path. The last entry
        // is true if the pattern may end here.
        let mut open = vec![false; self.names.len() + 1];
        if let Some(first) = open.first_mut() {
            *first = true;
        }
        self.skip_any(&mut open);
        for name in path {
            let mut next = vec![false; open.len()];
            for (n, pattern) in self.names.iter().enumerate() {
                if !open.get(n).copied().unwrap_or(false) {
                    continue;
                }
                let is_any = pattern == "**";
                let target = if is_any && n + 1 < self.names.len() {
                    n
                } else if is_any || is_name(pattern, name) {
                    n + 1
                } else {
                    continue;
                };
                if let Some(target) = next.get_mut(target) {
                    *target = true;
                }
            }
            self.skip_any(&mut next);
            if next.last() == Some(&true) {
                return true;
            }
            open = next;
        }
        false
    }

    /// Opens the component after each open `**`, because `**` can match zero components. Does not skip a final `**`,
    /// which must match at least one component.
    fn skip_any(&self, open: &mut [bool]) {
        for (n, pattern) in self.names.iter().enumerate() {
            let is_open = open.get(n).copied().unwrap_or(false);
            let is_skipped = is_open && pattern == "**" && n + 1 < self.names.len();
            if let Some(next) = open.get_mut(n + 1).filter(|_| is_skipped) {
                *next = true;
            }
        }
    }
}

/// Returns true if `name` matches `pattern`, in which `*` matches any string and `?` any character.
fn is_name(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The index of the last `*`, and the end of the characters that it matches.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || name.get(n) == Some(c) => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, reach)) = star else {
                    return false;
                };
                star = Some((at, reach + 1));
                p = at + 1;
                n = reach + 1;
            }
        }
    }
    pattern.iter().skip(p).all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, path: &str, wanted: bool) {
        let glob = Glob::new(pattern).unwrap();
        let names: Vec<&str> = path.split('/').collect();
        assert_eq!(glob.matches(&names), wanted, "{pattern} {path}");
    }

    #[test]
    fn glob_patterns_match_as_in_gitignore() {
        check("vendor", "vendor/a.yaml", true);
        check("vendor", "x/vendor/y/a.yaml", true);
        check("vendor/", "vendor", true);
        check("vendor", "vendors/a.yaml", false);
        check("*.json", "a/b.json", true);
        check("*.json", "a/b.yaml", false);
        check("a/*.yaml", "a/b.yaml", true);
        check("a/*.yaml", "a/b/c.yaml", false);
        check("a/*.yaml", "x/a/b.yaml", false);
        check("a/**", "a/b/c.yaml", true);
        check("a/**", "a", false);
        check("a/**/c.yaml", "a/c.yaml", true);
        check("a/**/c.yaml", "a/b/b/c.yaml", true);
        check("**/testdata/**", "x/testdata/y", true);
        check("**/testdata/**", "testdata/y", true);
        check("**", "a", true);
        check("./a/b", "a/b/c", true);
        check("a?c*e/x", "abcde/x", true);
        check("*a*b*c", "xxaxxbxxc", true);
        check("*a*b*c", "xxaxxcxxb", false);
    }

    #[test]
    fn pattern_that_cannot_match_is_rejected() {
        for pattern in ["", "./", "/a", "!a", "../a", "a//b", "a/./b"] {
            assert!(Glob::new(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn long_pattern_is_matched_in_linear_time() {
        let stars = "*a".repeat(2_000);
        check(&stars, &"a".repeat(20_000), true);
        check(&format!("{stars}b"), &"a".repeat(20_000), false);
        let deep = vec!["**"; 500].join("/") + "/x";
        check(&deep, &vec!["a"; 2_000].join("/"), false);
    }
}
