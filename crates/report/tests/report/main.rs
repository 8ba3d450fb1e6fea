//! Reports as browsers and readers see them.

mod browser;
mod common;
mod html;
mod networks;
