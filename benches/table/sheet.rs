//! Ways to do one thing, measured turn by turn, so that all see the same machine, and written as ratios to the first.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// One way to do something. A turn says how long it took, in its own words where it knows better than a clock around it.
pub(crate) struct Way<'a> {
    name: &'static str,
    turn: Box<dyn FnMut() -> Duration + 'a>,
    wanted: Option<Wanted>,
}

/// What a way may take.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// So many times the baseline.
    Ratio(f64),
    /// So long.
    Time(Duration),
}

impl<'a> Way<'a> {
    /// Measured by a clock around it.
    pub(crate) fn new(name: &'static str, mut work: impl FnMut() + 'a) -> Self {
        Self::told(name, move || {
            let begun = Instant::now();
            work();
            begun.elapsed()
        })
    }

    /// Says itself how long it took.
    pub(crate) fn told(name: &'static str, turn: impl FnMut() -> Duration + 'a) -> Self {
        Self {
            name,
            turn: Box::new(turn),
            wanted: None,
        }
    }

    pub(crate) fn wanted(mut self, wanted: Wanted) -> Self {
        self.wanted = Some(wanted);
        self
    }
}

/// What was measured so far: printed as it comes, kept to be written.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    part: String,
    rows: Vec<Value>,
}

/// The middle of what was measured, and the quarters beside it.
#[derive(Debug, Clone, Copy)]
struct Spread {
    low: f64,
    middle: f64,
    high: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
        Self {
            low: at(1),
            middle: at(2),
            high: at(3),
        }
    }
}

impl Sheet {
    /// Everything that was measured.
    pub(crate) fn rows(&self) -> &[Value] {
        &self.rows
    }

    /// Begins a part: what follows is of it.
    #[expect(clippy::print_stdout, reason = "a measuring program")]
    pub(crate) fn part(&mut self, title: &str) {
        title.clone_into(&mut self.part);
        println!("\n{title}");
        println!(
            "    {:34} {:>10} {:>23} {:>7}   {:>11}",
            "", "median", "quarters", "ratio", "quarters"
        );
    }

    /// Measures all ways, so many turns each after one that does not count, and holds them against the first.
    pub(crate) fn compare(&mut self, what: &str, rounds: usize, mut ways: Vec<Way<'_>>) {
        let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds); ways.len()];
        for round in 0..=rounds {
            for (way, times) in ways.iter_mut().zip(&mut times) {
                let took = (way.turn)().as_secs_f64();
                if round > 0 {
                    times.push(took);
                }
            }
        }
        let baseline = times[0].clone();
        for (place, (way, times)) in ways.iter().zip(times).enumerate() {
            // Within a round the machine was the same, so the quotients are of rounds.
            let ratios = times.iter().zip(&baseline).map(|(time, bare)| time / bare).collect();
            let ratio = (place > 0).then(|| Spread::of(ratios));
            self.row(what, way, rounds, Spread::of(times), ratio);
        }
    }

    #[expect(clippy::print_stdout, reason = "a measuring program")]
    fn row(&mut self, what: &str, way: &Way<'_>, rounds: usize, time: Spread, ratio: Option<Spread>) {
        let (wanted, kept) = match (way.wanted, ratio) {
            (Some(Wanted::Ratio(most)), Some(ratio)) => (Some(format!("{most} x")), ratio.middle <= most),
            (Some(Wanted::Ratio(most)), None) => (Some(format!("{most} x")), false),
            (Some(Wanted::Time(most)), _) => (Some(format!("{most:?}")), time.middle <= most.as_secs_f64()),
            (None, _) => (None, true),
        };
        let name = match ratio {
            None => format!("{what}: {}", way.name),
            Some(_) => format!("    {}", way.name),
        };
        let quarters = format!("{} … {}", shown(time.low), shown(time.high));
        let by = ratio.map_or_else(String::new, |ratio| {
            format!("{:>7.2}   {:.2} … {:.2}", ratio.middle, ratio.low, ratio.high)
        });
        let verdict = match (&wanted, kept) {
            (None, _) => String::new(),
            (Some(wanted), true) => format!("   within {wanted}"),
            (Some(wanted), false) => format!("   OVER {wanted}"),
        };
        println!(
            "    {name:34} {:>10} {quarters:>23} {by:22}{verdict}",
            shown(time.middle)
        );
        self.rows.push(json!({
            "part": self.part, "what": what, "way": way.name, "rounds": rounds, "seconds": {"low": time.low, "median": time.middle, "high": time.high},
            "ratio": ratio.map(|ratio| json!({"low": ratio.low, "median": ratio.middle, "high": ratio.high})),
            "wanted": wanted, "kept": kept,
        }));
    }

    /// Something that is not a time.
    #[expect(clippy::print_stdout, reason = "a measuring program")]
    pub(crate) fn figure(&mut self, what: &str, value: f64, unit: &str, kept: Option<(String, bool)>) {
        let verdict = match &kept {
            None => String::new(),
            Some((wanted, true)) => format!("   within {wanted}"),
            Some((wanted, false)) => format!("   OUTSIDE {wanted}"),
        };
        println!("    {what:50} {value:>12.1} {unit}{verdict}");
        let (wanted, kept) = kept.unzip();
        self.rows
            .push(json!({"part": self.part, "what": what, "value": value, "unit": unit, "wanted": wanted, "kept": kept.unwrap_or(true)}));
    }
}

fn shown(seconds: f64) -> String {
    format!("{:.2?}", Duration::from_secs_f64(seconds))
}
