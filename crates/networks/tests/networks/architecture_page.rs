//! The page of the book says what architecture files may hold.

use posterior_networks::Architecture;
use posterior_networks::architecture::Layers;

/// The page, where it is there: a packed crate has none.
fn page() -> Option<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/networks.md");
    std::fs::read_to_string(path).ok()
}

#[test]
fn every_operation_and_kind_is_in_the_book() {
    let Some(page) = page() else { return };
    let table = &page[page.find("### Layers").unwrap()..page.find("### From PyTorch").unwrap()];
    for operation in Layers::operations() {
        assert!(table.contains(&format!("`{operation}`")), "`{operation}` is not among the layers");
    }
    for kind in Architecture::KINDS {
        assert!(page.contains(kind), "the kind {kind} is not on the page");
    }
    // Nothing is promised that is not there.
    for line in table.lines().filter(|l| l.starts_with("| `")) {
        let cell = line.split('|').nth(1).unwrap();
        for name in cell.split('`').skip(1).step_by(2).filter(|n| *n != "operation") {
            assert!(Layers::operations().contains(&name), "`{name}` is no operation");
        }
    }
}

/// The layers that the translation table names exist, and small texts of its rows are networks.
#[test]
fn rows_of_the_translation_are_layers() {
    for (input, layer, output) in [
        ("[3, 7]", "operation = 'convolution'\noutputs = 2\nkernel = [3]", vec![2, 5]),
        ("[3, 6]", "operation = 'max_pool'\nkernel = [2]", vec![3, 3]),
        ("[3, 4, 4, 4]", "operation = 'average_pool'\nkernel = [2, 2, 2]\nstride = 1", vec![3, 3, 3, 3]),
        ("[3, 5, 5]", "operation = 'max_pool'\nkernel = 3\npadding = 1\nstride = 2", vec![3, 3, 3]),
        ("[3, 5]", "operation = 'rms_norm'\nepsilon = 1.1920929e-7", vec![3, 5]),
        ("[3, 5, 5]", "operation = 'normalise'\nover = { groups = 3 }", vec![3, 5, 5]),
        ("[3, 5, 5]", "operation = 'rms_normalise'\nover = { last_axes = 2 }", vec![3, 5, 5]),
        ("[3, 5, 5]", "operation = 'largest'\naxes = [1, 2]\nkeep = true", vec![3, 1, 1]),
        ("[3, 5, 5]", "operation = 'clip'\nlow = 0\nhigh = 6", vec![3, 5, 5]),
        ("[3, 5, 5]", "operation = 'shrink'\nthreshold = 0.5\nbias = 0.5", vec![3, 5, 5]),
        ("[3, 5, 5]", "operation = 'hard_sigmoid'", vec![3, 5, 5]),
        ("[4]", "operation = 'divide'\ninputs = ['input', 'input']", vec![4]),
        ("[4]", "operation = 'maximum'\ninputs = ['input', 'input']", vec![4]),
        (
            "[3, 5, 5]",
            "operation = 'pad'\nbefore = [0, 1, 2]\nafter = [0, 1, 2]\nmode = 'reflect'",
            vec![3, 7, 9],
        ),
        ("[3]", "operation = 'pad'\nbefore = [1]\nafter = [0]\nvalue = -1", vec![4]),
    ] {
        let text = format!("kind = 'layers'\ninput = {input}\n[[layer]]\nname = 'a'\n{layer}\n");
        let architecture = Architecture::from_toml(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let graph = architecture.graph().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(graph.output_shape(), output, "{text}");
        let written = Architecture::from_graph(&graph).unwrap().to_toml().unwrap();
        assert_eq!(Architecture::from_toml(&written).unwrap().graph().unwrap(), graph, "{written}");
    }
}
