//! Scans as their users see them.

use super::networks_common;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn json(at: &Path, line: &str) -> Value {
    networks_common::json(at, &format!("tomography {line}"))
}

fn error(at: &Path, line: &str) -> String {
    networks_common::error(at, &format!("tomography {line}"))
}

/// A scan of a phantom of 16 x 16.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::write(
        at.join("scan.toml"),
        "kind = \"parallel\"\nheight = 16\nwidth = 16\nangles = { count = 8 }\n",
    )
    .unwrap();
    let made =
        json(at, "project --phantom rectangles scan.toml -o sinogram.npy --image-out truth.npy --seed 4");
    assert_eq!(made["shape"], serde_json::json!([8, 25]));
    assert!(made["noise"].as_f64().unwrap() > 0.0);
    folder
}

const NETWORK: &str = "reconstruct scan.toml sinogram.npy --method deep-image-prior --channels 8,8 --weight 1e-4 --learning-rate 5e-3 --truth truth.npy";

#[test]
fn from_a_phantom_to_error_bars_and_the_next_angle() {
    let folder = folder();
    let at = folder.path();
    let filtered = json(
        at,
        "reconstruct scan.toml sinogram.npy --method filtered --filter hann --truth truth.npy -o filtered.tiff",
    );
    let smooth =
        json(at, "reconstruct scan.toml sinogram.npy --truth truth.npy -o smooth.png --report smooth.html");
    let quality = |v: &Value| v["psnr"].as_f64().unwrap();
    assert!(quality(&smooth) > quality(&filtered), "{} {}", quality(&smooth), quality(&filtered));
    assert_eq!(smooth["reason"], "tolerance");
    assert_eq!(smooth["held_back"]["trials"].as_array().unwrap().len(), 8);
    assert!(smooth["planned"]["seconds"].as_f64().unwrap() > 0.0);
    assert!(std::fs::read_to_string(at.join("smooth.html")).unwrap().contains("Absolute error"));

    let network =
        json(at, &format!("{NETWORK} --iterations 300 --network-out net.safetensors -o picture.npy"));
    assert_eq!(network["steps"], 300);
    assert!(network["best_quality"][0].as_f64().unwrap() >= quality(&network) - 1e-9);
    // The checkpoint is gone with the work.
    assert!(!at.join("picture.npy.checkpoint").exists());

    let posterior = json(
        at,
        "uncertainty scan.toml sinogram.npy --network net.safetensors --truth truth.npy --samples 20 --samples-em 4 --turns 3 --rank 20 -o deviation.npy --picture-out again.npy --samples-out draws.npy --report page.html",
    );
    assert_eq!(posterior["prior"]["prior"], "g-prior");
    assert!(posterior["largest_residual"].as_f64().unwrap() <= 0.011);
    assert_eq!(posterior["score"]["patches"].as_array().unwrap().len(), 5);
    assert!(posterior["noise_variance"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read(at.join("picture.npy")).unwrap(), std::fs::read(at.join("again.npy")).unwrap());
    let page = std::fs::read_to_string(at.join("page.html")).unwrap();
    assert!(page.contains("Draw 1") && page.contains("Coverage"));
    // Numbers of the same request are the same.
    let twice = "uncertainty scan.toml sinogram.npy --network net.safetensors --samples 20 --samples-em 4 --turns 3 --rank 20 -o twice.npy";
    json(at, twice);
    assert_eq!(
        std::fs::read(at.join("deviation.npy")).unwrap(),
        std::fs::read(at.join("twice.npy")).unwrap()
    );

    let filters = json(
        at,
        "uncertainty scan.toml sinogram.npy --network net.safetensors --prior filters --samples 8 -o filters.npy",
    );
    assert_eq!(filters["prior"]["prior"], "filters");
    assert_eq!(filters["prior"]["blocks"][0], "in");

    std::fs::write(
        at.join("scanner.toml"),
        "kind = \"parallel\"\nheight = 16\nwidth = 16\nangles = { count = 32 }\n",
    )
    .unwrap();
    let measured = "0,4,8,12,16,20,24,28";
    for (prior, more) in
        [("g-prior", "--network net.safetensors"), ("isotropic", ""), ("matern", "--samples 0")]
    {
        let line = format!(
            "design scanner.toml --measured {measured} sinogram.npy --prior {prior} {more} --count 3"
        );
        let next = json(at, &line);
        let angles: Vec<u64> =
            next["angles"].as_array().unwrap().iter().map(|a| a["angle"].as_u64().unwrap()).collect();
        assert_eq!(angles.len(), 3, "{prior}");
        assert!(angles.iter().all(|a| a % 4 != 0), "{prior}: {angles:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let folder = folder();
    let at = folder.path();
    let write = |name: &str, text: &str| std::fs::write(at.join(name), text).unwrap();
    write("other.toml", "kind = \"parallel\"\nheight = 16\nwidth = 16\nangles = { count = 9 }\n");
    let said = error(at, "reconstruct other.toml sinogram.npy -o x.npy");
    assert!(said.contains("sinogram.npy") && said.contains("[8, 25]") && said.contains("[9, 25]"), "{said}");
    assert!(said.contains("angles"), "{said}");
    write("none.toml", "kind = \"parallel\"\nheight = 16\nwidth = 16\nangles = { count = 0 }\n");
    assert!(error(at, "reconstruct none.toml sinogram.npy -o x.npy").contains("angle"));
    write(
        "huge.toml",
        "kind = \"parallel\"\nheight = 1000000000\nwidth = 1000000000\nangles = { count = 2 }\n",
    );
    assert!(error(at, "project --phantom walnut huge.toml -o x.npy").contains("huge.toml"));
    write("typo.toml", "kind = \"parallel\"\nheigth = 16\nwidth = 16\nangles = { count = 2 }\n");
    assert!(error(at, "project --phantom walnut typo.toml -o x.npy").contains("heigth"));
    // Angles in degrees that are called radians are computed, with a warning.
    write(
        "radians.toml",
        "kind = \"parallel\"\nheight = 16\nwidth = 16\nangles = { list = [0, 45, 90, 135], unit = \"radians\" }\n",
    );
    let made = json(at, "project --phantom rectangles radians.toml -o r.npy");
    assert!(made["warnings"][0].as_str().unwrap().contains("degrees"), "{made}");
    // Flags that a method does not have, and places that would be destroyed.
    assert!(error(at, "reconstruct scan.toml sinogram.npy --filter hann -o x.npy").contains("--filter"));
    let ignored = "design scan.toml --measured 0,2 sinogram.npy --prior matern --network no.safetensors";
    assert!(error(at, ignored).contains("--network"));
    assert!(
        error(at, "reconstruct scan.toml sinogram.npy --method filtered -o scan.toml").contains("scan.toml")
    );
    assert!(error(at, "reconstruct scan.toml sinogram.npy -o x.jpg").contains(".tiff"));
    // A picture of another size, line integrals called counts, memory.
    write("small.toml", "kind = \"parallel\"\nheight = 8\nwidth = 8\nangles = { count = 8 }\n");
    json(at, "project --phantom rectangles small.toml -o s.npy --image-out small.npy");
    let said = error(at, "reconstruct scan.toml sinogram.npy --truth small.npy -o x.npy");
    assert!(said.contains("small.npy") && said.contains("[8, 8]"), "{said}");
    let said = error(at, "reconstruct scan.toml sinogram.npy --counts -o x.npy");
    assert!(said.contains("negative") || said.contains("counts"), "{said}");
    let said = error(at, &format!("{NETWORK} --memory 0.00001 -o x.npy"));
    assert!(said.contains("memory"), "{said}");
    // A network of another scan.
    let small = "reconstruct small.toml s.npy --method deep-image-prior --channels 4,4 --weight 1e-4 --iterations 3 --network-out small.safetensors -o x.npy";
    json(at, small);
    let said = error(at, "uncertainty scan.toml sinogram.npy --network small.safetensors -o d.npy");
    assert!(said.contains("small.safetensors"), "{said}");
}

#[test]
fn what_was_killed_goes_on_and_another_request_does_not() {
    let folder = folder();
    let at = folder.path();
    let (state, picture) = (at.join("picture.npy.checkpoint"), at.join("picture.npy"));
    // The first checkpoint comes after two seconds: a machine that is done by then gets twice the work.
    let mut iterations = 5000;
    loop {
        let line = format!("tomography {NETWORK} --iterations {iterations} -o picture.npy");
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("posterior"))
            .current_dir(at)
            .args(line.split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while !state.exists()
            && child.try_wait().unwrap().is_none()
            && started.elapsed() < Duration::from_secs(60)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if state.exists() && !picture.exists() {
            break;
        }
        assert!(picture.exists() && iterations < 200_000, "it wrote no checkpoint");
        std::fs::remove_file(&picture).unwrap();
        iterations *= 2;
    }
    let line = format!("{NETWORK} --iterations {iterations}");
    let said = error(at, &format!("{NETWORK} --iterations {} -o picture.npy", iterations - 1));
    assert!(said.contains("iterations"), "{said}");
    let resumed = json(at, &format!("{line} -o picture.npy"));
    let straight = json(at, &format!("{line} -o straight.npy"));
    assert_eq!(resumed["loss"], straight["loss"]);
    assert_eq!(
        std::fs::read(at.join("picture.npy")).unwrap(),
        std::fs::read(at.join("straight.npy")).unwrap()
    );
}

/// Bytes that no plan counts, as in the tests of other plans: names, headers, what the allocator holds back.
const UNCOUNTED: i64 = 32 << 20;

const FLAT: &str = "kind = \"parallel\"\nheight = 64\nwidth = 64\nangles = { count = 10 }\n";
const DEEP: &str = "kind = \"stacked\"\ndepth = 12\nheight = 20\nwidth = 20\nangles = { count = 6 }\n";

/// Error bars of a flat picture. Fails, as the slow test does, if the plan of `tomography/src/uncertainty/plan.rs` leaves out the sweeps through the network.
#[test]
fn plans_of_pictures_bound_their_peaks() {
    pictures_bound_their_peaks(&[("flat", FLAT)], &["--descent 3"]);
}

#[test]
#[ignore = "slow"]
fn plans_of_every_picture_bound_their_peaks() {
    pictures_bound_their_peaks(&[("flat", FLAT), ("deep", DEEP)], &["--rank 70", "--descent 3"]);
}

/// Every step from the scan to error bars, which are solved for by each of these flags.
fn pictures_bound_their_peaks(geometries: &[(&str, &str)], solvers: &[&str]) {
    let folder = folder();
    let at = folder.path();
    let bytes = |v: &Value, key: &str| v[key].as_i64().unwrap();
    let bare = json(at, "reconstruct scan.toml sinogram.npy --method filtered -o bare.npy");
    if bare["peak_memory_bytes"].is_null() {
        posterior_testing::skip("this system does not tell the peak memory of a process");
        return;
    }
    let program = bytes(&bare, "peak_memory_bytes");
    let mut wrong = Vec::new();
    let mut check = |what: &str, found: &Value| {
        let (peak, planned) =
            (bytes(found, "peak_memory_bytes") - program, bytes(&found["planned"], "bytes"));
        println!("{what}: peak {:.1} MB, planned {:.1} MB", peak as f64 / 1e6, planned as f64 / 1e6);
        if peak > planned + UNCOUNTED {
            wrong.push(format!("{what}: peak {peak}, planned {planned}"));
        }
    };
    for (name, text) in geometries {
        std::fs::write(at.join(format!("{name}.toml")), text).unwrap();
        json(at, &format!("project --phantom walnut {name}.toml -o {name}.npy"));
        let scan = format!("{name}.toml {name}.npy");
        check(&format!("{name}, smooth"), &json(at, &format!("reconstruct {scan} -o {name}_smooth.npy")));
        let network = format!(
            "--method deep-image-prior --weight 1e-4 --iterations 3 --network-out {name}.safetensors"
        );
        check(
            &format!("{name}, network"),
            &json(at, &format!("reconstruct {scan} {network} --channels 16,16 -o {name}_deep.npy")),
        );
        for (i, solver) in solvers.iter().enumerate() {
            let bars = format!(
                "uncertainty {scan} --network {name}.safetensors --samples 16 --turns 1 {solver} -o {name}_bars{i}.npy"
            );
            check(&format!("{name}, {solver}"), &json(at, &bars));
        }
    }
    json(at, &format!("{NETWORK} --iterations 3 --network-out net.safetensors -o picture.npy"));
    let filters = "uncertainty scan.toml sinogram.npy --network net.safetensors --samples 16 --prior filters -o filters.npy";
    check("filters", &json(at, filters));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
