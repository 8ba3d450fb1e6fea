//! Text from files and command lines, as a terminal or a page may show it.

use std::borrow::Cow;

/// Whether a character acts on what shows it: a control character (C0, DEL, C1), or one that changes the direction of text (U+202A to U+202E, U+2066
/// to U+2069).
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text with control characters as escapes, such as `\u{1b}`. Newlines and tabs stay.
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_control(c) && !matches!(c, '\n' | '\t'))
}

/// As [`shown`], for text that belongs into one line, such as the cell of a table: newlines and tabs are escaped as well.
pub fn shown_in_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_control)
}

fn escaped(text: &str, acts: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_escapes() {
        let text = "a\u{1b}[31m\u{7f}\u{9b}\r\u{0}\u{202e}\u{2066}\n\tµ漢";
        assert_eq!(shown(text), "a\\u{1b}[31m\\u{7f}\\u{9b}\\r\\u{0}\\u{202e}\\u{2066}\n\tµ漢");
        assert_eq!(shown_in_line("a\n\tb"), "a\\n\\tb");
        assert!(matches!(shown("a\nb"), Cow::Borrowed("a\nb")));
    }
}
