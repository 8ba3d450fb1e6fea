//! Help is short, and what it leaves out is found: settings by `methods`, mistakes by what is said of them.

use clap::Command;

/// Every command with its words.
fn each<'a>(command: &'a Command, name: &str, out: &mut Vec<(String, &'a Command)>) {
    for below in command.get_subcommands().filter(|own| own.get_name() != "help") {
        let name = format!("{name} {}", below.get_name());
        out.push((name.clone(), below));
        each(below, &name, out);
    }
}

#[test]
fn short_help_lists_few_flags_and_long_help_no_settings() {
    let mut grammar = posterior_cli::grammar();
    grammar.build();
    let mut commands = Vec::new();
    each(&grammar, "posterior", &mut commands);
    assert!(commands.len() > 20, "{}", commands.len());
    for (name, command) in commands {
        let shown: Vec<&str> = command
            .get_arguments()
            .filter(|flag| !flag.is_hide_set() && !flag.is_hide_short_help_set())
            .filter_map(|flag| flag.get_long())
            .collect();
        assert!(shown.len() <= 25, "{name}: {shown:?}");
        let listed = command.get_arguments().filter(|flag| !flag.is_hide_set());
        let settings: Vec<&str> =
            listed.filter_map(|flag| flag.get_long()).filter(|long| long.starts_with("set ")).collect();
        assert!(settings.is_empty(), "{name}: {settings:?}");
    }
}

/// What a command prints and what it says on standard error.
fn run(line: &str) -> (String, String) {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_posterior"));
    let output = program.args(line.split_whitespace()).output().unwrap();
    let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (printed, said)
}

#[test]
fn methods_are_listed_with_costs_and_settings() {
    let (listed, _) = run("methods --json");
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let methods = listed["methods"].as_array().unwrap();
    let of = |name: &str| methods.iter().find(|own| own["name"] == name).unwrap();
    assert_eq!(of("svgp")["costs"][1]["rows"], 100_000);
    assert!(of("exact")["costs"][1]["bytes"].as_u64() > of("exact")["costs"][0]["bytes"].as_u64());
    assert_eq!(of("kronecker")["for"], "networks");
    assert_eq!(of("kronecker")["costs"][1]["rows"], 100_000);
    // A dense matrix of the weights of the layers of 64, 64 and 1 units on 8 inputs: sums, matrix and two factors.
    let weights = 64.0 * 9.0 + 64.0 * 65.0 + 65.0;
    let bytes = |name: &str, k: usize| of(name)["costs"][k]["bytes"].as_f64().unwrap();
    assert!(bytes("full", 0) > 4.0 * 8.0 * weights * weights && bytes("full", 0) < 2e9, "{listed}");
    // A kernel of all rows grows with their square.
    assert!(bytes("function-space", 1) > 1000.0 * bytes("function-space", 0), "{listed}");
    assert!(methods.iter().all(|own| own["costs"].as_array().unwrap().len() == 2), "{listed}");
    let (text, _) = run("methods auto");
    assert!(text.contains("a network of 8 inputs, two hidden layers of 64 units"), "{text}");
    let (text, _) = run("methods svgp");
    for part in ["--set inducing=M", "--set natural-length=X [default: 0.1]", "100000 rows of 8 columns"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("--set probes="), "{text}");
    let (text, _) = run("methods kronecker");
    assert!(
        text.contains("--set fisher=exact|monte-carlo|empirical") && !text.contains("--set points"),
        "{text}"
    );
    assert!(run("methods prior").0.contains("--set prior.noise-floor=X [default: 0.0001]"));
    assert!(run("methods nothing").1.contains("there is no method `nothing`"));
}

#[test]
fn what_is_misplaced_or_misspelt_is_said() {
    let fit = "fit t.csv --target y -o m.posterior";
    let network = "fit t.csv --network n.onnx --likelihood gaussian -o m.posterior";
    for (line, text) in [
        (format!("{fit} --inducing 10"), "--inducing is a setting: write --set inducing=VALUE"),
        (format!("{fit} --noise-floor 0"), "--noise-floor is a setting: write --set prior.noise-floor=VALUE"),
        (format!("{fit} --set kernel=se"), "--set kernel is a flag: write --kernel=VALUE"),
        (format!("{fit} --set inducng=10"), "a similar argument exists: '--set inducing'"),
        (format!("{fit} --set inducing=ten --method svgp"), "invalid value 'ten' for '--set inducing <M>'"),
        (format!("{fit} --method exact --set inducing=10"), "exact has none"),
        (format!("{fit} --method svgp --set svgp.inducing=10"), "with --method svgp write --set inducing=10"),
        (format!("{fit} --set dbk.rank=10"), "the candidates with settings of their own are exact"),
        (format!("{fit} --set svgp.inducing=0"), "for '--set svgp.inducing <M>'"),
        (format!("{fit} --tune evidence"), "--tune is for networks"),
        (format!("{fit} --set fisher=exact"), "--set fisher is for networks"),
        (format!("{network} --time-budget 5m"), "--time-budget is for tables without a network"),
        (
            format!("{network} --set points=5 --method full"),
            "--set points belongs to --method function-space",
        ),
        (format!("{fit} --out m.posterior"), "a similar argument exists: '--output'"),
        (
            format!("{fit} --set inducing 10"),
            "--set inducing needs a value other than true: write --set inducing=VALUE",
        ),
        (format!("{fit} --set =3"), "--set needs NAME=VALUE"),
        (format!("{fit} --method kronecker"), "--method kronecker is for networks"),
        (format!("{network} --method svgp"), "--method svgp is for tables without a network"),
        ("predict Cargo.toml m.posterior".into(), "The model is the first file, its data follow"),
        (
            "fit t.csv --network n.onnx -o m.posterior".into(),
            "--likelihood is one of categorical, gaussian, bernoulli, poisson, heteroscedastic",
        ),
        (format!("{fit} --method svgp --set steps=10"), "`posterior methods svgp` lists its settings"),
        (format!("{fit} --data t.csv"), "unexpected argument '--data' found"),
        (format!("{fit} --set"), "a value is required for '--set <NAME=VALUE>'"),
    ] {
        let (_, said) = run(&line);
        assert!(said.contains(text) && !said.contains("as a value"), "{line}: {said}");
    }
}
