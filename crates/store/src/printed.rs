//! JSON for programs that read what a command prints, in which a number that is none has a name.

use crate::to_shown_value;
use serde::Serialize;
use serde_json::Value;

/// As `serde_json::json!` for what is printed or written for programs: numbers that are not finite are the texts `"NaN"`, `"Infinity"` and `"-Infinity"` in it, and `null` is what is not there.
///
/// # Panics
/// For values that are no JSON, as `serde_json::json!`.
#[macro_export]
macro_rules! json {
    (null) => { $crate::Value::Null };
    ({ $($entries:tt)* }) => {{
        #[allow(unused_mut)]
        let mut map = $crate::Map::new();
        $crate::json!(@entries map $($entries)*);
        $crate::Value::Object(map)
    }};
    ([ $($values:tt)* ]) => {{
        #[allow(unused_mut)]
        let mut list = $crate::no_values();
        $crate::json!(@values list $($values)*);
        $crate::Value::Array(list)
    }};
    (@entries $map:ident) => {};
    (@entries $map:ident $key:tt : null $(, $($rest:tt)*)?) => {
        $map.insert(($key).into(), $crate::Value::Null);
        $($crate::json!(@entries $map $($rest)*);)?
    };
    (@entries $map:ident $key:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $map.insert(($key).into(), $crate::json!({ $($inner)* }));
        $($crate::json!(@entries $map $($rest)*);)?
    };
    (@entries $map:ident $key:tt : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $map.insert(($key).into(), $crate::json!([ $($inner)* ]));
        $($crate::json!(@entries $map $($rest)*);)?
    };
    (@entries $map:ident $key:tt : $value:expr $(, $($rest:tt)*)?) => {
        $map.insert(($key).into(), $crate::shown(&$value));
        $($crate::json!(@entries $map $($rest)*);)?
    };
    (@values $list:ident) => {};
    (@values $list:ident null $(, $($rest:tt)*)?) => {
        $list.push($crate::Value::Null);
        $($crate::json!(@values $list $($rest)*);)?
    };
    (@values $list:ident { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $list.push($crate::json!({ $($inner)* }));
        $($crate::json!(@values $list $($rest)*);)?
    };
    (@values $list:ident [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $list.push($crate::json!([ $($inner)* ]));
        $($crate::json!(@values $list $($rest)*);)?
    };
    (@values $list:ident $value:expr $(, $($rest:tt)*)?) => {
        $list.push($crate::shown(&$value));
        $($crate::json!(@values $list $($rest)*);)?
    };
    ($value:expr) => { $crate::shown(&$value) };
}

/// For [`json!`](crate::json).
#[doc(hidden)]
pub fn no_values() -> Vec<Value> {
    Vec::new()
}

#[doc(hidden)]
pub fn shown<T: Serialize + ?Sized>(value: &T) -> Value {
    to_shown_value(value).unwrap_or_else(|e| panic!("no JSON: {e}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_printed_names_numbers_that_are_none() {
        let (nan, list) = (f64::NAN, vec![1.0, f64::INFINITY]);
        let absent: Option<f64> = None;
        let found = json!({
            "a": nan, "b": [nan, null, {"c": -f64::INFINITY}, [1, 2.5]], "d": {"e": absent, "f": list[0] + 1.0},
            ("g"): list, "h": [1.0, nan].map(|v| v + 1.0), "i": null, "empty": {}, "none": [],
        });
        let expected = r#"{"a":"NaN","b":["NaN",null,{"c":"-Infinity"},[1,2.5]],"d":{"e":null,"f":2.0},"empty":{},"g":[1.0,"Infinity"],"h":[2.0,"NaN"],"i":null,"none":[]}"#;
        assert_eq!(found.to_string(), expected);
        assert_eq!(json!(nan).to_string(), "\"NaN\"");
    }
}
