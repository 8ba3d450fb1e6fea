//! Text to syntax, with errors that point at the character.

use super::object::Object;
use super::{Kind, Leaf, Node, Setting, additive, automatic, categories, images, network};
use serde_json::{Map, Value};

/// Longest text and deepest nesting that are read: far beyond use, and short of any stack.
const LONGEST: usize = 4096;
const DEEPEST: usize = 32;

/// What is wrong with a kernel's text, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}\n  {excerpt}\n  {}^", " ".repeat(*column))]
pub struct KernelTextError {
    /// What is wrong and what would be right.
    pub message: String,
    /// Byte of the text at which it is wrong.
    pub position: usize,
    excerpt: String,
    column: usize,
}

impl KernelTextError {
    pub(super) fn new(source: &str, position: usize, message: impl Into<String>) -> Self {
        /// Characters shown on either side of the place.
        const AROUND: usize = 40;
        let position =
            (0..=position.min(source.len())).rev().find(|&p| source.is_char_boundary(p)).unwrap_or(0);
        let before: Vec<char> = source[..position].chars().collect();
        let start = before.len().saturating_sub(AROUND);
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let excerpt: String = before[start..]
            .iter()
            .copied()
            .chain(source[position..].chars().take(AROUND))
            .map(visible)
            .collect();
        Self { message: message.into(), position, excerpt, column: before.len() - start }
    }
}

/// Most components of a spectral mixture. Each has two numbers for each column.
const MOST_COMPONENTS: f64 = 64.0;

struct Parser<'a> {
    source: &'a str,
    at: usize,
    depth: usize,
}

/// Refuses a text that is too long to be read.
pub(super) fn check_length(source: &str) -> Result<(), KernelTextError> {
    match source.len() > LONGEST {
        true => {
            let message = format!("a kernel's text has at most {LONGEST} characters");
            Err(KernelTextError::new(source, LONGEST, message))
        }
        false => Ok(()),
    }
}

pub(super) fn parse(source: &str) -> Result<Node, KernelTextError> {
    check_length(source)?;
    if source.trim() == automatic::NAME {
        return Ok(Node::Sum(Vec::new()));
    }
    let mut parser = Parser { source, at: 0, depth: 0 };
    let node = parser.sum()?;
    match parser.peek() {
        None => {}
        Some(_) => return Err(parser.error("expected `+`, `*` or the end")),
    }
    check_variances(&node, source)?;
    // What was read is written again, into model files, and must then be readable.
    if node.to_string().len() > LONGEST {
        let message = format!("with its spaces a kernel's text has at most {LONGEST} characters");
        return Err(KernelTextError::new(source, source.len(), message));
    }
    Ok(node)
}

/// No factor sets a variance that its product does not have.
fn check_variances(node: &Node, source: &str) -> Result<(), KernelTextError> {
    match node {
        Node::Leaf(_) | Node::Object(_) => Ok(()),
        Node::Warp(inner, _) => check_variances(inner, source),
        Node::Product(_) if node.has_amplitude() && !node.factor_variances().is_empty() => {
            let position = node.factor_variances()[0].position;
            let message = "this product has no `variance` to set: its variances are those of the sum, `linear(ard)`, `additive` or `spectral_mixture` among its factors; set them there";
            Err(KernelTextError::new(source, position, message))
        }
        Node::Sum(parts) | Node::Product(parts) => parts.iter().try_for_each(|p| check_variances(p, source)),
    }
}

impl Parser<'_> {
    fn error(&self, message: impl Into<String>) -> KernelTextError {
        KernelTextError::new(self.source, self.at, message)
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.source[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.source[self.at..].chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn sum(&mut self) -> Result<Node, KernelTextError> {
        self.series('+', Self::product, Node::Sum)
    }

    fn product(&mut self) -> Result<Node, KernelTextError> {
        self.series('*', Self::factor, Node::Product)
    }

    /// One or more parts with a sign between; a single part stands for itself.
    fn series(
        &mut self,
        sign: char,
        part: fn(&mut Self) -> Result<Node, KernelTextError>,
        join: fn(Vec<Node>) -> Node,
    ) -> Result<Node, KernelTextError> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.eat(sign) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn factor(&mut self) -> Result<Node, KernelTextError> {
        match self.peek() {
            None => Err(self.error("expected a kernel, such as `matern32(ard)`, but the text ends here")),
            Some('(') => {
                if self.depth == DEEPEST {
                    return Err(self.error(format!("parentheses are nested more than {DEEPEST} deep")));
                }
                self.eat('(');
                self.depth += 1;
                let inner = self.sum()?;
                self.depth -= 1;
                if self.eat(')') { Ok(inner) } else { Err(self.error("expected `)`")) }
            }
            Some(c) if c.is_ascii_digit() || c == '.' || c == '-' => Err(self.error(
                "a number is not a kernel: amplitudes are learned; to start from a value write e.g. `matern32(variance=2)`",
            )),
            Some(_) => self.leaf(),
        }
    }

    /// What stands behind the word `warp`.
    fn warp(&mut self, start: usize) -> Result<Node, KernelTextError> {
        if self.peek() != Some('(') {
            return Err(self.error("`warp` wants a kernel in parentheses, such as `warp(matern32(ard))`"));
        }
        let inner = self.factor()?;
        let looks = inner.leaves().into_iter().any(|leaf| leaf.kind.is_warped());
        if !looks && inner.objects().is_empty() {
            let message =
                "there is nothing to warp: no kernel in these parentheses looks at columns of numbers";
            return Err(KernelTextError::new(self.source, start, message));
        }
        Ok(Node::Warp(Box::new(inner), start))
    }

    fn leaf(&mut self) -> Result<Node, KernelTextError> {
        let start = self.at;
        let name = self.word()?;
        if name.eq_ignore_ascii_case("warp") {
            return self.warp(start);
        }
        let Some(kind) = Kind::named(&name) else { return self.object(start, &name) };
        let mut leaf = Leaf {
            kind,
            position: start,
            base: None,
            ard: false,
            activation: None,
            images: images::Images::default(),
            columns: Vec::new(),
            settings: Vec::new(),
        };
        if self.eat('(') && !self.eat(')') {
            loop {
                self.argument(&mut leaf)?;
                if self.eat(')') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.error("expected `,` or `)`"));
                }
            }
        }
        network::check(&leaf)
            .and_then(|()| images::check(&leaf, start))
            .and_then(|()| categories::check(&leaf))
            .and_then(|()| additive::check(&leaf))
            .map_err(|(position, message)| KernelTextError::new(self.source, position, message))?;
        Ok(Node::Leaf(leaf))
    }

    /// A kernel of the caller's own: a name with settings, or one that is registered.
    fn object(&mut self, start: usize, name: &str) -> Result<Node, KernelTextError> {
        let here = |at: usize, message: String| KernelTextError::new(self.source, at, message);
        if self.source[self.at..].starts_with('{') {
            let at = self.at;
            let mut values = serde_json::Deserializer::from_str(&self.source[at..]).into_iter::<Value>();
            let settings = match values.next() {
                Some(Ok(settings)) => settings,
                _ => return Err(here(at, format!("the settings of `{name}` are no JSON object"))),
            };
            self.at += values.byte_offset();
            return Object::parsed(name, settings, start).map(Node::Object).map_err(|e| here(start, e));
        }
        match crate::is_registered(name) {
            true => Object::parsed(name, Value::Object(Map::new()), start)
                .map(Node::Object)
                .map_err(|e| here(start, e)),
            false => Err(here(start, unknown_kernel(name))),
        }
    }

    fn argument(&mut self, leaf: &mut Leaf) -> Result<(), KernelTextError> {
        self.peek();
        let start = self.at;
        let here = |message: String| KernelTextError::new(self.source, start, message);
        let kernel = leaf.kind.names()[0];
        let in_quotes = self.source[start..].starts_with('`');
        let word = self.word()?;
        if in_quotes || !self.eat('=') {
            if word == "ard" && !in_quotes {
                if !leaf.kind.takes_ard() {
                    return Err(KernelTextError::new(
                        self.source,
                        start,
                        format!("`{kernel}` has nothing that could differ by column"),
                    ));
                }
                leaf.ard = true;
            } else if leaf.kind == Kind::Additive && !in_quotes && additive::base(&word).is_some() {
                additive::set_base(leaf, &word).map_err(here)?;
            } else if leaf.kind == Kind::Nngp && !in_quotes && network::known(&word).is_some() {
                network::set_activation(leaf, &word).map_err(here)?;
            } else if !in_quotes && images::is_layer(leaf.kind, &word) {
                images::add_word(leaf, &word, start);
            } else if leaf.kind.takes_columns() {
                leaf.columns.push((word, start));
            } else {
                return Err(KernelTextError::new(
                    self.source,
                    start,
                    format!("`{kernel}` does not look at columns"),
                ));
            }
            return Ok(());
        }
        if word == "columns" && leaf.kind.takes_columns() {
            self.peek();
            let position = self.at;
            let column = self.word()?;
            leaf.columns.push((column, position));
            return Ok(());
        }
        let allowed = leaf.kind.settings();
        let Some(&name) = allowed.iter().find(|s| **s == word) else {
            return Err(here(format!("`{kernel}` has no setting `{word}`; it has: {}", allowed.join(", "))));
        };
        if name == "activation" {
            self.peek();
            let at = self.at;
            let word = self.word()?;
            return network::set_activation(leaf, &word)
                .map_err(|message| KernelTextError::new(self.source, at, message));
        }
        if leaf.setting(name).is_some() {
            return Err(here(format!("`{name}` is set twice")));
        }
        self.peek();
        let at = self.at;
        let there = |message: String| KernelTextError::new(self.source, at, message);
        let length = self.source[at..].find([',', ')']).unwrap_or(self.source.len() - at);
        let text = self.source[at..at + length].trim();
        if images::SETTINGS.contains(&name) {
            images::set(leaf, name, text, start).map_err(there)?;
        } else {
            let value = value(name, text).map_err(there)?;
            leaf.settings.push(Setting { name, value, position: start });
        }
        self.at = at + length;
        Ok(())
    }

    /// A name: letters, digits and `_ . -` within; other names in backquotes.
    fn word(&mut self) -> Result<String, KernelTextError> {
        let first = self.peek();
        let rest = &self.source[self.at..];
        if first == Some('`') {
            let Some(end) = rest[1..].find('`') else {
                return Err(self.error("this backquote is never closed"));
            };
            self.at += end + 2;
            return Ok(rest[1..=end].to_string());
        }
        let length = rest.find(|c: char| !is_plain(c)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.error("expected a name"));
        }
        self.at += length;
        Ok(rest[..length].to_string())
    }
}

/// What a setting's text says, or what it should say.
fn value(name: &str, text: &str) -> Result<f64, String> {
    let whole = |most: f64| text.parse().ok().filter(|v: &f64| v.fract() == 0.0 && (1.0..=most).contains(v));
    match name {
        "degree" => (text.parse().ok()).filter(|v: &f64| *v > 0.0 && *v <= 16.0).ok_or_else(|| {
            "`degree` must be a positive number up to 16; fractions are for inputs whose inner products are all positive"
                .to_string()
        }),
        "depth" => whole(network::DEEPEST).ok_or_else(|| {
            format!(
                "`depth` counts hidden layers and must be a whole number from 1 to {}; without any, the kernel is `linear + constant`",
                network::DEEPEST
            )
        }),
        "rank" => whole(categories::LARGEST_RANK).ok_or_else(|| {
            format!(
                "`rank` must be a whole number from 1 to {}; without it all pairs of categories have one correlation",
                categories::LARGEST_RANK
            )
        }),
        "order" => whole(additive::HIGHEST_ORDER).ok_or_else(|| {
            format!(
                "`order` counts the columns of a product and must be a whole number from 1 to {}",
                additive::HIGHEST_ORDER
            )
        }),
        "components" => whole(MOST_COMPONENTS).ok_or_else(|| {
            format!("`components` must be a whole number from 1 to {MOST_COMPONENTS}")
        }),
        "seed" => (text.parse::<u32>().map(f64::from))
            .map_err(|_| format!("`seed` must be a whole number from 0 to {}", u32::MAX)),
        "readout" => match text {
            "true" => Ok(1.0),
            "false" => Ok(0.0),
            _ => Err("`readout` must be `true` or `false`".to_string()),
        },
        "bias" => (text.parse().ok())
            .filter(|v: &f64| v.is_finite() && *v >= 0.0)
            .map(f64::abs)
            .ok_or_else(|| "`bias` must be a positive number, or 0 for a network without biases".to_string()),
        _ => (text.parse().ok())
            .filter(|v: &f64| v.is_finite() && *v > 0.0)
            .ok_or_else(|| format!("`{name}` must be a positive number")),
    }
}

/// A column's name as the text form writes it among the arguments of a kernel.
pub(super) fn quoted(kind: Kind, name: &str) -> String {
    let taken = name == "ard"
        || (kind == Kind::Additive && additive::base(name).is_some())
        || (kind == Kind::Nngp && network::known(name).is_some())
        || images::is_layer(kind, name);
    let plain = !name.is_empty() && !taken && name.chars().all(is_plain);
    if plain { name.to_string() } else { format!("`{name}`") }
}

pub(super) fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_.-".contains(c)
}

fn unknown_kernel(name: &str) -> String {
    let names: Vec<&str> =
        Kind::ALL.iter().flat_map(|k| k.names()).copied().chain(std::iter::once("warp")).collect();
    let hint = match nearest(name, names.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => ".".to_string(),
    };
    format!("no kernel is called `{name}`{hint} Known: {}", names.join(", "))
}

/// The known name that was probably meant.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer names than this are not typing errors.
    const LONGEST_NAME: usize = 64;
    if name.len() > LONGEST_NAME {
        return None;
    }
    let lower = name.to_lowercase();
    known
        .map(|candidate| (edit_distance(&lower, &candidate.to_lowercase()), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| {
            *distance <= 3 && 2 * *distance <= candidate.chars().count().max(lower.chars().count())
        })
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
