//! Two targets measured in alternation: their figures side by side, with the spread of the runs.

use crate::figures::{Figure, figures_of};
use crate::result::{ComparedFigure, ComparedRun, Comparison, Side, Spread, Target};

/// `runs` in the order they ran: A, B, A, B … A figure that is missing in one of them is left out.
pub fn compare(a: Target, b: Target, runs: Vec<ComparedRun>) -> Comparison {
    let of = |side: Side| -> Vec<Vec<Figure>> {
        runs.iter()
            .filter(|compared| compared.side == side)
            .map(|compared| figures_of(&compared.run))
            .collect()
    };
    let figures = compared_figures(&of(Side::A), &of(Side::B));
    Comparison { a, b, runs, figures }
}

fn compared_figures(a: &[Vec<Figure>], b: &[Vec<Figure>]) -> Vec<ComparedFigure> {
    let names = a.first().map_or(&[][..], Vec::as_slice);
    names
        .iter()
        .filter_map(|figure| {
            let (a, b) = (values(a, &figure.name)?, values(b, &figure.name)?);
            Some(ComparedFigure {
                name: figure.name.clone(),
                unit: figure.unit.clone(),
                higher_is_better: figure.higher_is_better,
                a: spread(&a)?,
                b: spread(&b)?,
                a_to_b: ratio(&a, &b),
            })
        })
        .collect()
}

/// The figure of every run; `None` when one has it not.
fn values(runs: &[Vec<Figure>], name: &str) -> Option<Vec<f64>> {
    let find = |run: &Vec<Figure>| run.iter().find(|figure| figure.name == name).map(|figure| figure.value);
    runs.iter().map(find).collect()
}

/// `None` of nothing.
fn spread(values: &[f64]) -> Option<Spread> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median =
        if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
    Some(Spread { median, min, max })
}

fn ratio(a: &[f64], b: &[f64]) -> Option<Spread> {
    if b.contains(&0.0) {
        return None;
    }
    let pairs: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    let median = spread(a)?.median / spread(b)?.median;
    Some(Spread { median, ..spread(&pairs)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(value: f64) -> Vec<Figure> {
        let figure = |name: &str, value: f64| Figure {
            name: name.to_owned(),
            unit: "s".to_owned(),
            higher_is_better: false,
            value,
        };
        vec![figure("cpu", value), figure("zero", 0.0)]
    }

    #[test]
    fn medians_spread_and_ratios_are_those_of_the_runs() {
        let a = [1.0, 3.0, 2.0].map(figures);
        let mut b = [4.0, 4.0, 8.0].map(figures);
        let compared = compared_figures(&a, &b);
        assert_eq!(compared[0].a, Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(compared[0].b, Spread { median: 4.0, min: 4.0, max: 8.0 });
        assert_eq!(compared[0].a_to_b, Some(Spread { median: 0.5, min: 0.25, max: 0.75 }));
        assert_eq!(compared[1].a_to_b, None);
        b[1].remove(1);
        assert_eq!(compared_figures(&a, &b).len(), 1, "a figure that one run lacks is left out");
    }

    #[test]
    fn the_median_of_two_is_between_them() {
        assert_eq!(spread(&[1.0, 4.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(spread(&[]), None);
    }
}
