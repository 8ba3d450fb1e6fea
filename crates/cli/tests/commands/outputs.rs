//! Where commands write: never over what they read, never over other kinds of files, where links lead, and known before the work whether it is possible.

use std::path::Path;
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_posterior");

fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(BINARY);
    command.current_dir(folder).args(line.split_whitespace());
    command
}

fn run(folder: &Path, line: &str) -> Output {
    command(folder, line).output().unwrap()
}

fn succeeds(folder: &Path, line: &str) -> Output {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn error(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert!(!output.status.success(), "{line}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const FIT: &str = "fit t.csv --target y --set steps=3";
const PREDICT: &str = "predict m.posterior t.csv";
const EVALUATE: &str = "evaluate m.posterior t.csv";
const TRAIN: &str = "train net.toml t.csv --target y --loss mse --epochs 1";
const LAPLACE: &str = "fit t.csv --network net.safetensors --target y --likelihood gaussian --method full";

/// A table, a model, a network and its inputs.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rows = (0..30).map(|i| format!("{},{}\n", f64::from(i) / 10.0, (f64::from(i) / 5.0).sin()));
    std::fs::write(at.join("t.csv"), "x,y\n".to_string() + &rows.collect::<String>()).unwrap();
    std::fs::write(at.join("net.toml"), "kind = \"perceptron\"\ninputs = 1\nhidden = [4]\noutputs = 1\n")
        .unwrap();
    let mut npy: Vec<u8> = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend(format!("{:<117}\n", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1), }").bytes());
    npy.extend([0.5f64, 1.5].iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(at.join("x.npy"), npy).unwrap();
    succeeds(at, &format!("{FIT} -o m.posterior"));
    succeeds(at, &format!("{TRAIN} -o net.safetensors"));
    folder
}

#[test]
fn no_output_is_an_input() {
    let folder = folder();
    let at = folder.path();
    std::fs::hard_link(at.join("t.csv"), at.join("hard.csv")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("t.csv", at.join("soft.csv")).unwrap();
    #[cfg(not(unix))]
    std::fs::hard_link(at.join("t.csv"), at.join("soft.csv")).unwrap();
    std::fs::create_dir(at.join("deep")).unwrap();
    let files = ["t.csv", "m.posterior", "net.toml", "net.safetensors", "x.npy"];
    let before = files.map(|f| std::fs::read(at.join(f)).unwrap());
    for line in [
        format!("{FIT} -o t.csv"),
        format!("{FIT} -o deep/../soft.csv"),
        format!("{FIT} -o hard.csv"),
        format!("{FIT} -o n.posterior --checkpoint t.csv --method cg"),
        format!("{PREDICT} -o t.csv"),
        format!("{PREDICT} -o hard.csv"),
        format!("{PREDICT} -o m.posterior"),
        format!("{EVALUATE} --report m.posterior"),
        format!("{EVALUATE} --report soft.csv"),
        format!("{TRAIN} -o net.toml"),
        format!("{TRAIN} -o t.csv"),
        format!("{TRAIN} -o new.safetensors --checkpoint t.csv"),
        format!("{LAPLACE} -o net.safetensors"),
        format!("{LAPLACE} -o t.csv"),
        "forward net.safetensors x.npy -o x.npy".into(),
        "optimize start soft.csv --candidates t.csv".into(),
    ] {
        // Insisting does not help.
        let text = error(at, &format!("{line} --force"));
        assert!(text.contains("this command reads that file"), "{line}\n{text}");
    }
    for (file, before) in files.iter().zip(before) {
        assert_eq!(std::fs::read(at.join(file)).unwrap(), before, "{file}");
    }
    let text = error(at, "predict m.posterior t.csv -o a.npy --joint ./a.npy");
    assert!(text.contains("goes there too"), "{text}");
}

#[test]
fn files_of_another_kind_stay_unless_forced() {
    let folder = folder();
    let at = folder.path();
    let other = "id,price\n1,2\n";
    let forward = "forward net.safetensors x.npy";
    for (line, flag) in [
        (FIT, "--output"),
        (PREDICT, "--output"),
        (EVALUATE, "--report"),
        (TRAIN, "--output"),
        (LAPLACE, "--output"),
        (forward, "--output"),
    ] {
        // By its name the output of a network is an array.
        let name = if line == forward { "other.npy" } else { "other.csv" };
        std::fs::write(at.join(name), other).unwrap();
        let text = error(at, &format!("{line} {flag} {name}"));
        assert!(text.contains("exists and is not") && text.contains("--force"), "{line}\n{text}");
        assert_eq!(std::fs::read_to_string(at.join(name)).unwrap(), other, "{line}");
        succeeds(at, &format!("{line} {flag} {name} --force"));
        // Its own kind is replaced without a word.
        succeeds(at, &format!("{line} {flag} {name}"));
    }
    // Anybody's table may be a table: none is replaced.
    std::fs::write(at.join("other.csv"), other).unwrap();
    assert!(error(at, &format!("{forward} -o other.csv")).contains("--force"));
    succeeds(at, &format!("{forward} -o other.csv --force"));
    assert!(std::fs::read_to_string(at.join("other.csv")).unwrap().starts_with("output_1"));
    assert!(error(at, &format!("{forward} -o y.npy --labels x.npy")).contains("--labels are a column"));
    // Of its own format, and yet another kind.
    std::fs::write(at.join("page.html"), "<!DOCTYPE html>\n<html><head><title>Home</title></head></html>")
        .unwrap();
    assert!(error(at, &format!("{EVALUATE} --report page.html")).contains("is not a report"));
    assert!(error(at, &format!("{TRAIN} -o m.posterior")).contains("is not a network"));
    assert!(error(at, &format!("{FIT} -o net.safetensors")).contains("is not a model"));
    assert!(
        error(at, &format!("{FIT} --method cg -o n.posterior --checkpoint m.posterior"))
            .contains("is not a checkpoint")
    );
    succeeds(at, &format!("{PREDICT} -o p.parquet"));
    succeeds(at, &format!("{PREDICT} -o p.parquet"));
    // An empty file holds nothing to lose.
    std::fs::write(at.join("empty"), "").unwrap();
    succeeds(at, &format!("{PREDICT} -o empty"));
    let mut permissions = std::fs::metadata(at.join("empty")).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(at.join("empty"), permissions).unwrap();
    assert!(error(at, &format!("{PREDICT} -o empty")).contains("write-protected"));
}

#[test]
fn places_that_cannot_be_written_are_found_before_the_work() {
    let folder = folder();
    let at = folder.path();
    std::fs::create_dir(at.join("folder")).unwrap();
    for (place, expected) in [
        ("absent/file", "there is no folder absent; make it first"),
        ("folder", "it is a folder"),
        ("t.csv/file", "t.csv is no folder"),
        #[cfg(target_os = "linux")]
        ("/proc/file", "no file can be made in /proc"),
    ] {
        // Inputs that would take long: a model and a network that are not even there are not missed before the place.
        for line in [
            format!("{FIT} -o {place}"),
            format!("predict absent.posterior absent.csv -o {place}"),
            format!("evaluate absent.posterior absent.csv --report {place}"),
            format!("{TRAIN} -o {place}"),
            format!("fit absent.csv --network absent.onnx --likelihood gaussian -o {place}"),
            format!("forward absent.onnx absent.npy -o {place}"),
            format!("optimize start {place} --space x:0..1 --force"),
        ] {
            let text = error(at, &line);
            assert!(text.contains(expected) && !text.contains("plan"), "{line}\n{text}");
        }
    }
}

#[cfg(unix)]
#[test]
fn links_pipes_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder();
    let at = folder.path();
    // A link to a model in another folder.
    std::fs::create_dir(at.join("models")).unwrap();
    std::fs::copy(at.join("m.posterior"), at.join("models/real.posterior")).unwrap();
    std::fs::set_permissions(at.join("models/real.posterior"), PermissionsExt::from_mode(0o640)).unwrap();
    symlink("models/real.posterior", at.join("link.posterior")).unwrap();
    succeeds(at, &format!("{FIT} --seed 7 -o link.posterior"));
    assert!(at.join("link.posterior").is_symlink());
    let real = std::fs::metadata(at.join("models/real.posterior")).unwrap();
    assert_eq!(real.permissions().mode() & 0o777, 0o640);
    let inspected = succeeds(at, "inspect models/real.posterior --json").stdout;
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&inspected).unwrap()["header"]["seed"], 7);

    // The umask holds for new files.
    let line = format!("umask 027; exec {BINARY} {FIT} -o new.posterior");
    assert!(Command::new("sh").current_dir(at).args(["-c", &line]).output().unwrap().status.success());
    assert_eq!(std::fs::metadata(at.join("new.posterior")).unwrap().permissions().mode() & 0o777, 0o640);

    // A pipe, standard output and a device take the bytes and stay what they are.
    assert!(Command::new("mkfifo").arg(at.join("pipe")).status().unwrap().success());
    let reader = Command::new("cat").arg(at.join("pipe")).stdout(Stdio::piped()).spawn().unwrap();
    succeeds(at, &format!("{PREDICT} -o pipe"));
    let through = String::from_utf8(reader.wait_with_output().unwrap().stdout).unwrap();
    assert!(through.starts_with("x,y,y_mean,") && through.lines().count() == 31, "{through}");
    assert!(!std::fs::metadata(at.join("pipe")).unwrap().is_file());
    let printed = succeeds(at, &format!("{PREDICT} -o /dev/stdout")).stdout;
    assert_eq!(String::from_utf8(printed).unwrap(), through);
    let line = format!("echo first > o.csv; {BINARY} {PREDICT} -o /dev/stdout >> o.csv; echo last >> o.csv");
    assert!(Command::new("sh").current_dir(at).args(["-c", &line]).status().unwrap().success());
    let text = std::fs::read_to_string(at.join("o.csv")).unwrap();
    assert_eq!(text, format!("first\n{through}last\n"));
    succeeds(at, &format!("{FIT} -o /dev/null"));
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}
