//! A text, word by word: digits or letters with marks between them.

/// What is left of a text.
pub(super) struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self(text)
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> Option<&'a str> {
        let (word, rest) = self.0.split_at(self.0.find(|c| !is_part(c)).unwrap_or(self.0.len()));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    /// Digits.
    pub(super) fn number(&mut self) -> Option<&'a str> {
        self.take(|c| c.is_ascii_digit())
    }

    /// Digits, letters or both.
    pub(super) fn any(&mut self) -> Option<&'a str> {
        self.take(char::is_alphanumeric)
    }

    /// One mark.
    pub(super) fn mark(&mut self) -> Option<char> {
        let mark = self.0.chars().next()?;
        self.0 = &self.0[mark.len_utf8()..];
        Some(mark)
    }

    /// Marks as they stand between the parts of a date.
    pub(super) fn gap(&mut self) {
        self.take(|c| " ,-/.".contains(c));
    }

    /// All that was not read.
    pub(super) fn rest(&self) -> &'a str {
        self.0
    }
}

/// The number of a month by its English, German, French or Spanish name, or at least three letters of its beginning that no other month has.
pub(super) fn month_of(word: &str) -> Option<i8> {
    const NAMES: [&[&str]; 12] = [
        &["january", "januar", "janvier", "enero"],
        &["february", "februar", "février", "febrero"],
        &["march", "märz", "mars", "marzo", "mrz"],
        &["april", "avril", "abril"],
        &["may", "mai", "mayo"],
        &["june", "juni", "juin", "junio"],
        &["july", "juli", "juillet", "julio"],
        &["august", "août", "agosto"],
        &["september", "septembre", "septiembre"],
        &["october", "oktober", "octobre", "octubre"],
        &["november", "novembre", "noviembre"],
        &["december", "dezember", "décembre", "diciembre"],
    ];
    let letters = word.chars().count();
    if !(3..=10).contains(&letters) || !word.chars().all(char::is_alphabetic) {
        return None;
    }
    let lower = word.to_lowercase();
    let fits = |names: &&[&str]| names.iter().any(|name| name.starts_with(&lower));
    let mut found = (1..).zip(NAMES).filter(|(_, names)| fits(names)).map(|(month, _)| month);
    found.next().filter(|_| found.next().is_none())
}
