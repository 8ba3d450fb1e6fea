//! A check that markup is well formed.

/// Checks that tags are balanced and properly nested, attributes quoted and unique, `&` and `<` used only for markup,
/// and that no coordinate is anything but a finite number. Returns the number of elements.
pub fn check_markup(html: &str) -> Result<usize, String> {
    let rest = html.strip_prefix("<!DOCTYPE html>").ok_or("no document type")?;
    let mut open: Vec<&str> = Vec::new();
    let mut elements = 0;
    let mut rest = rest;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start], open.last().copied())?;
        let end = rest[start..].find('>').ok_or("an unfinished tag")? + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let expected = open.pop();
            if expected != Some(name) {
                return Err(format!("</{name}> closes {expected:?}"));
            }
            continue;
        }
        elements += 1;
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(format!("a tag called {name:?}"));
        }
        check_attributes(name, attributes)?;
        if !closed {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(elements) } else { Err(format!("never closed: {open:?}")) }
}

fn check_text(text: &str, parent: Option<&str>) -> Result<(), String> {
    if parent == Some("style") {
        return Ok(());
    }
    for (at, _) in text.match_indices('&') {
        let entity = &text[at..text[at..].find(';').map_or(text.len(), |e| at + e + 1)];
        if !["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"].contains(&entity) {
            return Err(format!("a bare & in {text:?}"));
        }
    }
    Ok(())
}

fn check_attributes(element: &str, text: &str) -> Result<(), String> {
    let mut names = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").ok_or(format!("in <{element}>: {rest:?}"))?;
        let (value, after) = after.split_once('"').ok_or(format!("in <{element}>: {name} is not closed"))?;
        check_text(value, None)?;
        if names.contains(&name) || name.contains(|c: char| c.is_whitespace() || c == '"') {
            return Err(format!("in <{element}>: attribute {name:?}"));
        }
        names.push(name);
        let numeric = ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "d", "viewBox"];
        if numeric.contains(&name) && element != "meta" {
            for number in value.split(|c: char| c == ' ' || "MLlZz".contains(c)).filter(|n| !n.is_empty()) {
                let ok = number.parse::<f64>().is_ok_and(f64::is_finite);
                if !ok {
                    return Err(format!("in <{element}>: {name} = {value:?}"));
                }
            }
        }
        rest = after.trim_start();
    }
    Ok(())
}
