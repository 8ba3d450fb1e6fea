//! Numbers that are none, on the way to JSON, which has no NaN and no infinity: serde_json would write `null`, which says that there is nothing and cannot be read as a number again.
//!
//! Files refuse them with the place of the first ([`to_value`], [`write_json`]), but for fields that may hold them and say so with [`any_number`](crate::any_number). What is printed for
//! programs names them, as the texts `"NaN"`, `"Infinity"` and `"-Infinity"` ([`to_shown_value`], [`json!`](crate::json)).

use serde::de::DeserializeOwned;
use serde::ser::{
    Error, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Value;
use std::borrow::Cow;
use std::cell::RefCell;

/// The text of a number that JSON has not; None for finite numbers.
pub(crate) fn name_of(value: f64) -> Option<&'static str> {
    match value {
        v if v.is_finite() => None,
        v if v.is_nan() => Some("NaN"),
        v if v > 0.0 => Some("Infinity"),
        _ => Some("-Infinity"),
    }
}

/// As [`serde_json::to_value`] for what goes to a file.
///
/// # Errors
/// The place of the first number that is not finite, as `fit.scores[3].nll`; what is no JSON.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, serde_json::Error> {
    placed(|place| value.serialize(Guarded { inner: serde_json::value::Serializer, place: Some(place) }))
}

/// As [`serde_json::from_str`], in two steps: what headers are is read from values only, in files and out of them. Reading each type from text as well would be compiled for each of them.
///
/// # Errors
/// For text that is no JSON, or JSON of something else.
pub fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_value(serde_json::from_str(text)?)
}

/// As [`serde_json::to_value`] for what is printed: numbers that are not finite are texts.
///
/// # Errors
/// What is no JSON.
pub fn to_shown_value<T: Serialize + ?Sized>(value: &T) -> Result<Value, serde_json::Error> {
    value.serialize(Guarded { inner: serde_json::value::Serializer, place: None })
}

/// As [`serde_json::to_writer`] for what goes to a file.
///
/// # Errors
/// As [`to_value`]; those of `out`.
pub fn write_json<T: Serialize + ?Sized>(
    out: &mut dyn std::io::Write,
    value: &T,
) -> Result<(), serde_json::Error> {
    let mut inner = serde_json::Serializer::new(out);
    placed(|place| value.serialize(Guarded { inner: &mut inner, place: Some(place) }))
}

/// What stands between a number and the whole, innermost first.
type Place = RefCell<Vec<Step>>;

enum Step {
    Key(Cow<'static, str>),
    Index(usize),
}

/// Puts the place of a refused number before its error.
fn placed<T>(write: impl FnOnce(&Place) -> Result<T, serde_json::Error>) -> Result<T, serde_json::Error> {
    let place = Place::default();
    write(&place).map_err(|error| {
        let mut text = String::new();
        for step in place.borrow().iter().rev() {
            match step {
                Step::Key(key) if text.is_empty() => text += key,
                Step::Key(key) => text += &format!(".{key}"),
                Step::Index(index) => text += &format!("[{index}]"),
            }
        }
        // Errors of the writer, of full disks for one, stay what they are.
        match error.is_io() || text.is_empty() {
            true => error,
            false => Error::custom(format!("`{text}` {error}")),
        }
    })
}

/// A serialiser, a map or a list of it, that looks at numbers: it refuses those that are not finite where there is a place to note the way to them, and writes their names otherwise.
struct Guarded<'a, S> {
    inner: S,
    place: Option<&'a Place>,
}

/// A value within, for the same eyes.
struct Within<'a, T: ?Sized> {
    value: &'a T,
    place: Option<&'a Place>,
}

impl<T: Serialize + ?Sized> Serialize for Within<'_, T> {
    fn serialize<S: Serializer>(&self, inner: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Guarded { inner, place: self.place })
    }
}

impl<'a, S> Guarded<'a, S> {
    fn within<'v, T: ?Sized>(&self, value: &'v T) -> Within<'v, T>
    where
        'a: 'v,
    {
        Within { value, place: self.place }
    }

    fn around<O>(place: Option<&'a Place>, inner: O) -> Guarded<'a, O> {
        Guarded { inner, place }
    }

    /// Notes a step on the way out to an error.
    fn step<O, E>(&self, result: Result<O, E>, step: impl FnOnce() -> Step) -> Result<O, E> {
        if let (Err(_), Some(place)) = (&result, self.place) {
            place.borrow_mut().push(step());
        }
        result
    }
}

/// Methods that pass a plain value on.
macro_rules! plain {
    ($($method:ident: $type:ty),* $(,)?) => {
        $(fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.inner.$method(value)
        })*
    };
}

impl<'a, S: Serializer> Serializer for Guarded<'a, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = List<'a, S::SerializeSeq>;
    type SerializeTuple = List<'a, S::SerializeTuple>;
    type SerializeTupleStruct = List<'a, S::SerializeTupleStruct>;
    type SerializeTupleVariant = List<'a, S::SerializeTupleVariant>;
    type SerializeMap = Guarded<'a, S::SerializeMap>;
    type SerializeStruct = Guarded<'a, S::SerializeStruct>;
    type SerializeStructVariant = Guarded<'a, S::SerializeStructVariant>;

    plain!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_char: char,
        serialize_str: &str, serialize_bytes: &[u8], serialize_unit_struct: &'static str,
    );

    fn serialize_f32(self, value: f32) -> Result<S::Ok, S::Error> {
        if value.is_finite() { self.inner.serialize_f32(value) } else { self.serialize_f64(value.into()) }
    }

    fn serialize_f64(self, value: f64) -> Result<S::Ok, S::Error> {
        match (name_of(value), self.place) {
            (None, _) => self.inner.serialize_f64(value),
            (Some(name), None) => self.inner.serialize_str(name),
            (Some(name), Some(_)) => {
                Err(S::Error::custom(format!("is {name}, and files hold finite numbers")))
            }
        }
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let within = self.within(value);
        self.inner.serialize_some(&within)
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let within = self.within(value);
        self.inner.serialize_newtype_struct(name, &within)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let (within, place) = (self.within(value), self.place);
        let result = self.inner.serialize_newtype_variant(name, index, variant, &within);
        Guarded::<S>::around(place, ()).step(result, || Step::Key(variant.into()))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        Ok(List::of(self.place, self.inner.serialize_seq(length)?))
    }

    fn serialize_tuple(self, length: usize) -> Result<Self::SerializeTuple, S::Error> {
        Ok(List::of(self.place, self.inner.serialize_tuple(length)?))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        Ok(List::of(self.place, self.inner.serialize_tuple_struct(name, length)?))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        Ok(List::of(self.place, self.inner.serialize_tuple_variant(name, index, variant, length)?))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        Ok(Self::around(self.place, self.inner.serialize_map(length)?))
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<Self::SerializeStruct, S::Error> {
        Ok(Self::around(self.place, self.inner.serialize_struct(name, length)?))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        Ok(Self::around(self.place, self.inner.serialize_struct_variant(name, index, variant, length)?))
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// A list under way.
struct List<'a, S> {
    all: Guarded<'a, S>,
    next: usize,
}

impl<'a, S> List<'a, S> {
    fn of(place: Option<&'a Place>, inner: S) -> Self {
        Self { all: Guarded { inner, place }, next: 0 }
    }
}

macro_rules! list {
    ($($of:ident: $method:ident),*) => {
        $(impl<S: $of> $of for List<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
                let within = self.all.within(value);
                let result = self.all.inner.$method(&within);
                self.next += 1;
                self.all.step(result, || Step::Index(self.next - 1))
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.all.inner.end()
            }
        })*
    };
}

list!(
    SerializeSeq: serialize_element, SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field, SerializeTupleVariant: serialize_field
);

macro_rules! fields {
    ($($of:ident),*) => {
        $(impl<S: $of> $of for Guarded<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), S::Error> {
                let within = self.within(value);
                let result = self.inner.serialize_field(key, &within);
                self.step(result, || Step::Key(key.into()))
            }

            fn skip_field(&mut self, key: &'static str) -> Result<(), S::Error> {
                self.inner.skip_field(key)
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

impl<S: SerializeMap> SerializeMap for Guarded<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.inner.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        let within = self.within(value);
        self.inner.serialize_value(&within)
    }

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), S::Error> {
        let within = self.within(value);
        let result = self.inner.serialize_entry(key, &within);
        let name = || match serde_json::to_value(key) {
            Ok(Value::String(name)) => Step::Key(name.into()),
            other => Step::Key(other.unwrap_or_default().to_string().into()),
        };
        self.step(result, name)
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_number;
    use serde::{Deserialize, Serialize};
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Kind {
        Pair(f64, f64),
        Named { value: f64 },
        One(f64),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inner {
        values: Vec<f64>,
        by_name: BTreeMap<String, Option<f64>>,
        kinds: Vec<Kind>,
        #[serde(with = "any_number")]
        best: f64,
        #[serde(with = "any_number::optional", default)]
        score: Option<f64>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Outer {
        step: u64,
        narrow: f32,
        #[serde(flatten)]
        inner: Inner,
    }

    fn example() -> Outer {
        let by_name = BTreeMap::from([("a".to_string(), None), ("b".to_string(), Some(-0.0))]);
        let kinds = vec![Kind::Pair(1.0, 2.0), Kind::Named { value: 0.1 }, Kind::One(1e300)];
        let inner = Inner { values: vec![1.0, 2.5], by_name, kinds, best: f64::INFINITY, score: None };
        Outer { step: u64::MAX, narrow: 0.1, inner }
    }

    fn text(value: &Outer) -> Result<String, serde_json::Error> {
        let mut out = Vec::new();
        write_json(&mut out, value).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn what_is_finite_is_written_as_always_and_named_numbers_come_back() {
        let mut whole = example();
        for best in [1.5, f64::INFINITY, f64::NEG_INFINITY] {
            for score in [None, Some(2.0), Some(f64::NEG_INFINITY)] {
                (whole.inner.best, whole.inner.score) = (best, score);
                assert_eq!(text(&whole).unwrap(), serde_json::to_string(&whole).unwrap());
                assert_eq!(serde_json::from_str::<Outer>(&text(&whole).unwrap()).unwrap(), whole);
                let value = to_value(&whole).unwrap();
                assert_eq!(serde_json::from_value::<Outer>(value).unwrap(), whole);
            }
        }
        whole.inner.score = Some(f64::NAN);
        let read: Outer = serde_json::from_value(to_value(&whole).unwrap()).unwrap();
        assert!(read.inner.score.unwrap().is_nan());
        let wrong = text(&whole).unwrap().replace("\"NaN\"", "\"nan\"");
        assert!(serde_json::from_str::<Outer>(&wrong).unwrap_err().to_string().contains("Infinity"));
    }

    #[test]
    fn what_is_not_finite_is_refused_with_its_place() {
        type Spoil = fn(&mut Outer);
        let all: [(Spoil, &str); 7] = [
            (|o| o.narrow = f32::NAN, "`narrow` is NaN"),
            (|o| o.inner.values[1] = f64::INFINITY, "`values[1]` is Infinity"),
            (|o| o.inner.by_name.extend([("b".into(), Some(f64::NAN))]), "`by_name.b` is NaN"),
            (|o| o.inner.kinds[0] = Kind::Pair(0.0, f64::NEG_INFINITY), "`kinds[0][1]` is -Infinity"),
            (|o| o.inner.kinds[1] = Kind::Named { value: f64::NAN }, "`kinds[1].value` is NaN"),
            (|o| o.inner.kinds[2] = Kind::One(f64::NAN), "`kinds[2].One` is NaN"),
            (|o| o.inner.values = vec![f64::NAN; 3], "`values[0]` is NaN"),
        ];
        for (spoil, expected) in all {
            let mut one = example();
            spoil(&mut one);
            for error in [text(&one).unwrap_err(), to_value(&one).unwrap_err()] {
                assert!(error.to_string().starts_with(expected), "{error}, not {expected}");
            }
        }
    }
}
