//! Embeds the files of `files/`, so that the program needs no checkout.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=files");
    let folder = fs::canonicalize("files").expect("the folder `files` stands beside the manifest");
    let entries = fs::read_dir(folder).expect("the folder `files` can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file of it").path()).collect();
    paths.sort();
    let named = |path: &PathBuf| format!("({:?}, include_str!({path:?})),\n", path.file_stem().unwrap());
    let list: String = paths.iter().map(named).collect();
    let out = env::var_os("OUT_DIR").expect("cargo names a folder for what is made");
    fs::write(Path::new(&out).join("embedded.rs"), format!("&[\n{list}]")).expect("it can be written to");
}
