//! One call of the harness: which brokers, which loads, in which order.

use std::collections::BTreeMap;

use crate::broker::choice::{Choice, Ready};
use crate::broker::host::{file_system_of, host};
use crate::broker::own::Making;
use crate::cli::Arguments;
use crate::compare::compare;
use crate::load::{self, Order};
use crate::rate::Rate;
use crate::result::{ComparedRun, Curve, Document, Outcome, Progress, Run, Side};
use crate::wire::admin::Failure;
use crate::workload::Workload;

/// How long a maximum is looked for that other loads are percents of.
const MAXIMUM_SECONDS_MAX: u64 = 10;
const DURABILITY: &str = "onrush.durability";

/// Does what the flags say. Errors: wrong flags, a broker that does not come up or breaks off.
pub fn run(arguments: &Arguments, progress: &mut dyn FnMut(Progress)) -> Result<Document, Failure> {
    let mut changes = arguments.changes.clone();
    changes.extend(arguments.lines.as_ref().map(|file| format!("records.file={file}")));
    let workload = Workload::load(&arguments.workload, &changes)?;
    let rate = match (arguments.rate, workload.producers.rate.as_str()) {
        (Some(rate), _) => Some(rate),
        (None, "") => None,
        (None, text) => Some(text.parse()?),
    };
    let session = Session { arguments, workload, rate };
    let mut host = host();
    let outcome = if arguments.compare {
        session.compare(progress)?
    } else {
        let ready = session.make_ready(&arguments.choice(), &[])?;
        host.data_file_system = ready.own.as_ref().and_then(|own| file_system_of(&own.data()));
        if arguments.curve.is_empty() {
            Outcome::Run(Box::new(session.measure(&ready, session.rate, progress)?))
        } else {
            Outcome::Curve(session.curve(&ready, progress)?)
        }
    };
    let command = std::env::args().collect();
    Ok(Document { harness_version: env!("CARGO_PKG_VERSION").to_owned(), command, host, outcome })
}

struct Session<'a> {
    arguments: &'a Arguments,
    workload: Workload,
    rate: Option<Rate>,
}

impl Session<'_> {
    /// `settings`: `KEY=VALUE`, stronger than those of the workload and of `--broker-set`.
    fn make_ready(&self, choice: &Choice, settings: &[String]) -> Result<Ready, Failure> {
        let mut all: BTreeMap<String, String> = self.workload.broker.settings.clone();
        if let (Choice::Onrush(_), Some(durability)) = (choice, &self.arguments.durability) {
            all.insert(DURABILITY.to_owned(), durability.clone());
        }
        for setting in self.arguments.broker_settings.iter().chain(settings) {
            let (key, value) =
                setting.split_once('=').ok_or_else(|| format!("{setting} is not KEY=VALUE"))?;
            all.insert(key.to_owned(), value.to_owned());
        }
        let choice = match (choice, &self.arguments.onrush) {
            (Choice::Onrush(None), Some(binary)) => &Choice::Onrush(Some(binary.clone())),
            _ => choice,
        };
        choice.make_ready(&Making {
            settings: all,
            data_parent: self.arguments.data.clone(),
            memory_limit_mib: self.workload.broker.memory_limit_mib,
        })
    }

    fn order(&self, ready: &Ready) -> Order {
        Order {
            target: ready.target.clone(),
            broker_pids: ready.pids.clone(),
            metrics: self.arguments.metrics.clone(),
            data: ready.own.as_ref().map(|own| own.data()),
            workload: self.workload.clone(),
            warm_up_seconds: self.arguments.warm_up_seconds,
            seconds: self.arguments.seconds,
            rate: None,
            percent_of_max: None,
            verifies: self.arguments.verifies(),
            threads: usize::from(self.arguments.threads),
        }
    }

    /// One run at `rate`, after one at the maximum if it is a percent of that.
    fn measure(
        &self,
        ready: &Ready,
        rate: Option<Rate>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Run, Failure> {
        match rate {
            Some(Rate::PercentOfMax(percent)) => {
                let maximum = self.maximum(ready, progress)?;
                self.measure_at_percent(ready, percent, records_per_second(&maximum), progress)
            }
            rate => self.measure_order(&Order { rate, ..self.order(ready) }, ready, progress),
        }
    }

    fn measure_at_percent(
        &self,
        ready: &Ready,
        percent: f64,
        maximum: f64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Run, Failure> {
        let rate = Some(Rate::RecordsPerSecond(maximum * percent / 100.0));
        let order = Order { rate, percent_of_max: Some(percent), ..self.order(ready) };
        self.measure_order(&order, ready, progress)
    }

    fn measure_order(
        &self,
        order: &Order,
        ready: &Ready,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Run, Failure> {
        let mut run = load::run(order, progress)?;
        run.notes.splice(0..0, ready.notes.iter().cloned());
        progress(Progress::RunEnded(&run));
        Ok(run)
    }

    /// A closed loop, without a backlog and without looking at the records.
    fn maximum(&self, ready: &Ready, progress: &mut dyn FnMut(Progress)) -> Result<Run, Failure> {
        progress(Progress::Note("looking for the maximum first"));
        let mut order = self.order(ready);
        order.workload.backlog.mib = 0;
        order.seconds = order.seconds.min(MAXIMUM_SECONDS_MAX);
        order.verifies = false;
        self.measure_order(&order, ready, progress)
    }

    fn curve(&self, ready: &Ready, progress: &mut dyn FnMut(Progress)) -> Result<Curve, Failure> {
        let maximum = self.maximum(ready, progress)?;
        let mut percents = self.arguments.curve.clone();
        percents.sort_by(f64::total_cmp);
        let rate = records_per_second(&maximum);
        let points = percents.iter().map(|percent| self.measure_at_percent(ready, *percent, rate, progress));
        Ok(Curve { points: points.collect::<Result<_, _>>()?, maximum: Box::new(maximum) })
    }

    /// The load before the first run that counts: a virtual machine compiles meanwhile what it runs often.
    fn settle(&self, ready: &Ready, maximum: f64, progress: &mut dyn FnMut(Progress)) -> Result<(), Failure> {
        let seconds = self.arguments.settle_seconds;
        if seconds > 0 {
            progress(Progress::Note(&format!("{} settles before the first run", ready.target.name)));
            let order =
                Order { warm_up_seconds: 0, seconds, verifies: false, ..self.compared_order(ready, maximum) };
            load::run(&order, progress)?;
        }
        Ok(())
    }

    fn compared_order(&self, ready: &Ready, maximum: f64) -> Order {
        match self.rate {
            Some(Rate::PercentOfMax(percent)) => Order {
                rate: Some(Rate::RecordsPerSecond(maximum * percent / 100.0)),
                percent_of_max: Some(percent),
                ..self.order(ready)
            },
            rate => Order { rate, ..self.order(ready) },
        }
    }

    /// A percentage is of the lower of the two maxima: both sides carry the same load.
    fn compare(&self, progress: &mut dyn FnMut(Progress)) -> Result<Outcome, Failure> {
        let b = self.arguments.b.as_ref().ok_or("a comparison needs --b")?;
        let a = self.make_ready(&self.arguments.a, &self.arguments.a_settings)?;
        let b = self.make_ready(b, &self.arguments.b_settings)?;
        let maximum = match self.rate {
            Some(Rate::PercentOfMax(_)) => {
                let maxima = [self.maximum(&a, progress)?, self.maximum(&b, progress)?];
                maxima.iter().map(records_per_second).fold(f64::INFINITY, f64::min)
            }
            _ => f64::INFINITY,
        };
        for ready in [&a, &b] {
            self.settle(ready, maximum, progress)?;
        }
        let mut runs = Vec::new();
        for _ in 0..self.arguments.runs {
            for (side, ready) in [(Side::A, &a), (Side::B, &b)] {
                let order = self.compared_order(ready, maximum);
                write_back();
                let mut run = self.measure_order(&order, ready, progress)?;
                run.notes.push("The other broker of the comparison was running beside it, idle.".to_owned());
                runs.push(ComparedRun { side, run });
            }
        }
        Ok(Outcome::Comparison(Box::new(compare(a.target, b.target, runs))))
    }
}

/// Has the kernel write to the disk what the runs before have left in memory: else a broker that waits for the disk waits for the
/// other one's bytes, too.
fn write_back() {
    // SAFETY: the call has no arguments, and cannot fail.
    unsafe { libc::sync() };
}

fn records_per_second(run: &Run) -> f64 {
    run.totals.produced.records as f64 / run.totals.seconds
}
