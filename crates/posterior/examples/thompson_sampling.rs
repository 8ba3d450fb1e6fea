//! Where to look next: the maxima of posterior draws are the experiments worth making.
//!
//! `cargo run --release -p posterior --example thompson_sampling`

use posterior::decisions::campaign::{Direction, Outcome, Settings};
use posterior::decisions::{Axis, Campaign, Scale, Space};
use posterior::optim::Signal;

/// What a laboratory would measure, best at 75 degrees and 10 minutes.
fn measured(temperature: f64, minutes: f64) -> f64 {
    let (warm, long) = ((temperature - 75.0) / 15.0, (minutes / 10.0).ln());
    100.0 * (-0.5 * (warm * warm + long * long)).exp()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let space = Space::new(vec![
        Axis::new("temperature", 20.0, 120.0, Scale::Linear)?,
        Axis::new("minutes", 1.0, 100.0, Scale::Log)?,
    ])?;
    let settings = Settings { direction: Direction::Maximise, ..Settings::new(space.dimension()) };
    let mut campaign = Campaign::new(space, settings)?;
    for round in 1..=6 {
        // Four at once: four plausible worlds, each with its own best place. `campaign.save` keeps the state between rounds.
        let proposal = campaign.ask(4, &mut |_, _, _| Signal::Continue)?;
        let asked: Vec<_> =
            campaign.trials().iter().filter(|t| proposal.ids.contains(&t.id)).cloned().collect();
        for trial in asked {
            let value = measured(trial.point[0], trial.point[1]);
            campaign.tell(trial.id, Outcome::Done { value }, false)?;
        }
        if let Some(best) = campaign.best() {
            println!("round {round}: best so far {:.1} at {:.0?}", best.value, best.point);
        }
    }
    Ok(())
}
