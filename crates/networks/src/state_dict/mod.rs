//! **State dictionaries of PyTorch**: the tensors of `.pt` and `.pth` files as `torch.save` writes them, without Python.
//!
//! Such a file is an archive: `data.pkl`, a program for a stack machine that builds nested objects, and one member of plain numbers for each storage. The
//! program is *read*, not obeyed: of its objects only dictionaries, lists, tuples, numbers, text and views of storages are made, everything else stands there as
//! a name without content ([`pickle`]), so that nothing in a file is ever run.
//!
//! | file | what |
//! |---|---|
//! | `pickle` | the stack machine |
//! | `objects` | what it builds |
//! | `open` | the archive, which of its dictionaries is meant, numbers of one tensor at a time |
//!
//! Only members that are stored as they are (PyTorch compresses none) are read, so that memory is bounded by the length of the file; a view that repeats numbers is
//! made only after its shape was found to be the one that a network needs.

mod objects;
mod open;
mod pickle;
#[cfg(test)]
mod tests;

pub(crate) use open::StateDict;
