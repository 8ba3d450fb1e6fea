//! The stack machine of Python's `pickle`, as far as state dictionaries use it.
//!
//! Every instruction that builds plain data is carried out. A class or function is only a name: the few that rebuild tensors are known by theirs, a call of any other gives an
//! object without content. Instructions beyond these are refused. Time and memory are linear in the length of the program.

use super::objects::{Objects, Storage, Value, View};
use safetensors::Dtype;
use std::collections::HashMap;

/// Values that a program may make: a network of a million tensors makes fewer, and each takes some dozens of bytes.
const MOST_VALUES: usize = 4_000_000;

/// Reads a program; what it built, and what it ends in. The error says what stands at which byte.
pub(super) fn read(program: &[u8]) -> Result<(Objects, Value), String> {
    let mut machine = Machine {
        program,
        at: 0,
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        objects: Objects::default(),
        made: 0,
    };
    loop {
        let begun = machine.at;
        match machine.step() {
            Ok(None) => {}
            Ok(Some(root)) => return Ok((machine.objects, root)),
            Err(problem) => return Err(format!("{problem} (byte {begun} of its data.pkl)")),
        }
    }
}

struct Machine<'a> {
    program: &'a [u8],
    at: usize,
    stack: Vec<Value>,
    /// Heights of the stack that were marked.
    marks: Vec<usize>,
    memo: HashMap<usize, Value>,
    objects: Objects,
    made: usize,
}

const CUT_OFF: &str = "it is cut off";
const EMPTY_STACK: &str = "it takes more values than it has";

impl Machine<'_> {
    fn bytes(&mut self, count: usize) -> Result<&[u8], String> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.program.len()).ok_or(CUT_OFF)?;
        let bytes = &self.program[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    /// A whole number from 0 on in so many bytes.
    fn unsigned(&mut self, bytes: usize) -> Result<usize, String> {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(self.bytes(bytes)?);
        usize::try_from(u64::from_le_bytes(wide)).map_err(|_| CUT_OFF.into())
    }

    /// A text whose length was said.
    fn text(&mut self, length: usize) -> Result<Value, String> {
        let text = std::str::from_utf8(self.bytes(length)?).map_err(|_| "a text is not UTF-8")?.to_string();
        Ok(Value::Text(Objects::keep(&mut self.objects.texts, text)))
    }

    /// A text up to the end of its line.
    fn line(&mut self) -> Result<String, String> {
        /// Longer names of classes there are not.
        const LONGEST: usize = 1024;
        let rest = &self.program[self.at..];
        let length = rest.iter().take(LONGEST).position(|&b| b == b'\n').ok_or(CUT_OFF)?;
        let line = std::str::from_utf8(&rest[..length]).map_err(|_| "a name is not UTF-8")?.to_string();
        self.at += length + 1;
        Ok(line)
    }

    fn push(&mut self, value: Value) -> Result<(), String> {
        self.made += 1;
        if self.made > MOST_VALUES {
            return Err(format!("it makes more than {MOST_VALUES} values"));
        }
        self.stack.push(value);
        Ok(())
    }

    /// Takes the uppermost value, which lies above the last mark.
    fn pop(&mut self) -> Result<Value, String> {
        let floor = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= floor {
            return Err(EMPTY_STACK.into());
        }
        self.stack.pop().ok_or_else(|| EMPTY_STACK.into())
    }

    /// Takes what lies above the last mark.
    fn pop_marked(&mut self) -> Result<Vec<Value>, String> {
        let mark = self.marks.pop().ok_or("it takes values from a mark that is not there")?;
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, values: Vec<Value>) -> Result<(), String> {
        let tuple = Objects::keep(&mut self.objects.tuples, values);
        self.push(Value::Tuple(tuple))
    }

    /// A tuple of the uppermost values.
    fn short_tuple(&mut self, length: usize) -> Result<(), String> {
        let mut values = (0..length).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
        values.reverse();
        self.tuple(values)
    }

    fn empty_dictionary(&mut self) -> Value {
        Value::Dictionary(Objects::keep(&mut self.objects.dictionaries, Vec::new()))
    }

    /// Adds keys and values to the uppermost dictionary; other objects keep none.
    fn set_items(&mut self, items: &[Value]) -> Result<(), String> {
        if !items.len().is_multiple_of(2) {
            return Err("a key has no value".into());
        }
        let target = self.pop()?;
        if let Value::Dictionary(i) = target {
            self.objects.dictionaries[i].extend(items.as_chunks().0.iter().map(|&[key, value]| (key, value)));
        }
        self.stack.push(target);
        Ok(())
    }

    fn remember(&mut self, place: usize) -> Result<(), String> {
        let value = *self.stack.last().ok_or(EMPTY_STACK)?;
        self.memo.insert(place, value);
        Ok(())
    }

    fn recall(&mut self, place: usize) -> Result<(), String> {
        let value = *self.memo.get(&place).ok_or("it recalls a value that it has not kept")?;
        self.push(value)
    }

    fn global(&mut self, module: String, name: String) -> Result<(), String> {
        let global = Objects::keep(&mut self.objects.globals, (module, name));
        self.push(Value::Global(global))
    }

    /// One instruction; the value that the program ends in at its end.
    fn step(&mut self) -> Result<Option<Value>, String> {
        let instruction = self.bytes(1)?[0];
        match instruction {
            // PROTO, FRAME: nothing to do.
            0x80 => {
                self.bytes(1)?;
            }
            0x95 => {
                self.bytes(8)?;
            }
            b'.' => return Ok(Some(self.pop()?)),
            b'(' => self.marks.push(self.stack.len()),
            b'N' | 0x88 | 0x89 => self.push(Value::Plain)?,
            b'G' => {
                self.bytes(8)?;
                self.push(Value::Plain)?;
            }
            b'K' => {
                let whole = self.unsigned(1)? as i64;
                self.push(Value::Whole(whole))?;
            }
            b'M' => {
                let whole = self.unsigned(2)? as i64;
                self.push(Value::Whole(whole))?;
            }
            b'J' => {
                let whole = i64::from(self.unsigned(4)? as u32 as i32);
                self.push(Value::Whole(whole))?;
            }
            0x8a => self.long()?,
            b'X' => {
                let length = self.unsigned(4)?;
                let text = self.text(length)?;
                self.push(text)?;
            }
            0x8c => {
                let length = self.unsigned(1)?;
                let text = self.text(length)?;
                self.push(text)?;
            }
            0x8d => {
                let length = self.unsigned(8)?;
                let text = self.text(length)?;
                self.push(text)?;
            }
            // Bytes, which no tensor here needs.
            b'C' => {
                let length = self.unsigned(1)?;
                self.bytes(length)?;
                self.push(Value::Plain)?;
            }
            b'B' => {
                let length = self.unsigned(4)?;
                self.bytes(length)?;
                self.push(Value::Plain)?;
            }
            b')' => self.tuple(Vec::new())?,
            b't' => {
                let values = self.pop_marked()?;
                self.tuple(values)?;
            }
            0x85..=0x87 => self.short_tuple(usize::from(instruction - 0x84))?,
            // Lists are places to put things: nothing that is looked for stands in one.
            b']' | 0x8f => self.push(Value::List)?,
            b'a' => {
                self.pop()?;
            }
            b'e' | 0x90 => {
                self.pop_marked()?;
            }
            b'}' => {
                let dictionary = self.empty_dictionary();
                self.push(dictionary)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set_items(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_marked()?;
                self.set_items(&items)?;
            }
            b'0' => {
                self.pop()?;
            }
            b'q' => {
                let place = self.unsigned(1)?;
                self.remember(place)?;
            }
            b'r' => {
                let place = self.unsigned(4)?;
                self.remember(place)?;
            }
            0x94 => self.remember(self.memo.len())?,
            b'h' => {
                let place = self.unsigned(1)?;
                self.recall(place)?;
            }
            b'j' => {
                let place = self.unsigned(4)?;
                self.recall(place)?;
            }
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.global(module, name)?;
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let named = self.objects.text(module).zip(self.objects.text(name));
                let (module, name) = named.ok_or("the name of a class is no text")?;
                if module.len().max(name.len()) > LONGEST_NAME {
                    return Err("the name of a class is too long".into());
                }
                let (module, name) = (module.to_string(), name.to_string());
                self.global(module, name)?;
            }
            b'Q' => {
                let identity = self.pop()?;
                let storage = self.storage(identity)?;
                self.push(storage)?;
            }
            b'R' | 0x81 => {
                let (arguments, callee) = (self.pop()?, self.pop()?);
                let made = self.call(callee, arguments)?;
                self.push(made)?;
            }
            // The state of an object: what hooks and versions a dictionary has is nothing that numbers depend on.
            b'b' => {
                self.pop()?;
            }
            other => {
                return Err(format!("it uses instruction {other:#04x}, which no state dictionary needs"));
            }
        }
        Ok(None)
    }

    /// A whole number of any length; of those beyond 64 bits nothing is kept.
    fn long(&mut self) -> Result<(), String> {
        let length = self.unsigned(1)?;
        let bytes = self.bytes(length)?;
        let value = if length > 8 {
            Value::Plain
        } else {
            let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
            let mut wide = [if negative { 0xff } else { 0 }; 8];
            wide[..length].copy_from_slice(bytes);
            Value::Whole(i64::from_le_bytes(wide))
        };
        self.push(value)
    }

    /// `('storage', class, key, device, length)`.
    fn storage(&mut self, identity: Value) -> Result<Value, String> {
        let objects = &self.objects;
        let parts = objects.tuple(identity).unwrap_or_default();
        let &[kind, class, key, _, length] = parts else {
            return Err("it refers to something outside itself that is no storage".into());
        };
        let Value::Global(class) = class else { return Err("the type of a storage is no class".into()) };
        let class = &objects.globals[class].1;
        let (Some("storage"), Some(key), Some(length)) =
            (objects.text(kind), objects.text(key), Objects::size(length))
        else {
            return Err("a storage has no name or no length".into());
        };
        if key.len() > LONGEST_NAME {
            return Err("the name of a storage is too long".into());
        }
        // Types of numbers that are not read are a matter of the tensors that need them.
        let Some(dtype) = dtype(class) else {
            return Ok(Value::Plain);
        };
        let storage = Storage { key: key.to_string(), dtype, length };
        Ok(Value::Storage(Objects::keep(&mut self.objects.storages, storage)))
    }

    /// What a class or function makes, as far as it is known here.
    fn call(&mut self, callee: Value, arguments: Value) -> Result<Value, String> {
        let Value::Global(number) = callee else { return Ok(Value::Plain) };
        let (module, name) = &self.objects.globals[number];
        let arguments = self.objects.tuple(arguments).unwrap_or_default();
        match (module.as_str(), name.as_str()) {
            ("collections", "OrderedDict") if arguments.is_empty() => Ok(self.empty_dictionary()),
            ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
                Ok(arguments.first().copied().unwrap_or(Value::Plain))
            }
            ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => {
                let &[Value::Storage(storage), offset, shape, strides, ..] = arguments else {
                    return Ok(Value::Foreign(number));
                };
                let view = (Objects::size(offset), self.objects.sizes(shape), self.objects.sizes(strides));
                let (Some(offset), Some(shape), Some(strides)) = view else {
                    return Err("a tensor has an impossible shape".into());
                };
                if shape.len() != strides.len() {
                    return Err("a tensor has more axes than strides".into());
                }
                let view = View { storage, offset, shape, strides };
                Ok(Value::Tensor(Objects::keep(&mut self.objects.views, view)))
            }
            _ => Ok(Value::Foreign(number)),
        }
    }
}

/// Bytes of a name that a program may have copied any number of times.
const LONGEST_NAME: usize = 256;

/// The type of the numbers of a class of storages.
fn dtype(class: &str) -> Option<Dtype> {
    Some(match class {
        "FloatStorage" => Dtype::F32,
        "DoubleStorage" => Dtype::F64,
        "HalfStorage" => Dtype::F16,
        "BFloat16Storage" => Dtype::BF16,
        "LongStorage" => Dtype::I64,
        "IntStorage" => Dtype::I32,
        "ShortStorage" => Dtype::I16,
        "CharStorage" => Dtype::I8,
        "ByteStorage" => Dtype::U8,
        "BoolStorage" => Dtype::BOOL,
        _ => return None,
    })
}
