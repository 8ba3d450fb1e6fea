//! How help is ordered: the heading of each flag, and the flags that `-h` lists of commands with many.

use clap::Command;

/// Most flags that `-h` lists of a command.
const LISTED: usize = 25;

/// Headings in their order with the ids of their flags, those that `-h` lists of every command before the others.
const HEADINGS: [(&str, &str, &str); 6] = [
    (
        "Data",
        "features categories labels limit",
        "exclude index exposure row_weights calendar date_order missing missing_target unseen input \
         preprocess mean std flip shift stream from_disk allow_other_inputs columns format from \
         follow last_line bad_rows",
    ),
    (
        "Target",
        "target likelihood loss",
        "target_transform noise window class_weights class_names link pseudo_count matching",
    ),
    (
        "Method",
        "method set kernel network continue model epochs learning_rate",
        "inference hyperparameters share_kernel config head architecture onnx_output strip_softmax \
         predictive predictive_samples variances variance_rank float32 float64 precision optimizer \
         schedule batch weight_decay momentum warm_up drop_every drop_factor clip",
    ),
    (
        "Validation",
        "test_fraction folds validation_data calibrate patience",
        "fold groups time held_back validation_fraction validation_labels tune allow_seen_rows",
    ),
    (
        "Output",
        "output force quantiles sets report against status",
        "verbose samples samples_out joint leave_one_out latent top csv_safe ood rotate corrupt joint_kappa",
    ),
    (
        "Limits",
        "memory time_budget threads seed",
        "checkpoint checkpoint_every fresh resume lock_timeout wait",
    ),
];

/// Where a flag stands: its heading with the heading's place, and whether `-h` lists it of every command.
fn place(id: &str) -> Option<(usize, &'static str, bool)> {
    HEADINGS.iter().enumerate().find_map(|(at, (heading, common, rare))| {
        let has = |ids: &str| ids.split_whitespace().any(|own| own == id);
        let common = has(common);
        (common || has(rare)).then_some((at, *heading, common))
    })
}

/// The place of the heading of a flag among all.
pub(crate) fn rank(id: &str) -> usize {
    place(id).map_or(HEADINGS.len(), |(at, ..)| at)
}

/// A command with headings and, where it has many flags, fewer of them under `-h`.
pub(crate) fn with_headings(command: Command) -> Command {
    // Beside its own it has --json, --quiet, --help and --version.
    let own = command.get_arguments().filter(|flag| !flag.is_positional() && !flag.is_hide_set());
    let many = own.count() + 4 > LISTED;
    command.mut_args(|flag| {
        let Some((_, heading, common)) = place(flag.get_id().as_str()).filter(|_| !flag.is_positional())
        else {
            let rare = many && !flag.is_positional();
            return if rare { flag.hide_short_help(true) } else { flag };
        };
        // What has a heading of its own keeps it.
        let own = flag.get_help_heading().is_some();
        let flag = if own { flag } else { flag.help_heading(heading) };
        if many && !common { flag.hide_short_help(true) } else { flag }
    })
}
