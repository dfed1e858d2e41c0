//! Lines over two axes.

use plotters::coord::CoordTranslate;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::canvas::{self, Drawn, GREY, GRID, INK, LegendEntry, MARGIN, Sheet, WIDTH};

const PLOT_HEIGHT: i32 = 520;
const X_LABEL_HEIGHT: i32 = 50;
const CAPTION_HEIGHT: i32 = 62;
const POINT_RADIUS: u32 = 7;

pub struct Line {
    /// `None`: it is not in the legend.
    pub label: Option<String>,
    pub colour: RGBColor,
    /// From 0, not seen, to 1.
    pub opacity: f64,
    pub width: u32,
    pub is_dashed: bool,
    pub has_points: bool,
    /// Values, x rising. `None` for y: nothing is known there, and the line has a gap.
    pub points: Vec<(f64, Option<f64>)>,
}

impl Line {
    pub fn new(label: String, colour: RGBColor, points: Vec<(f64, Option<f64>)>) -> Line {
        Line {
            label: Some(label),
            colour,
            opacity: 1.0,
            width: 4,
            is_dashed: false,
            has_points: false,
            points,
        }
    }

    fn style(&self) -> ShapeStyle {
        ShapeStyle::from(self.colour.mix(self.opacity)).stroke_width(self.width)
    }

    /// Its parts without gaps, as places.
    fn parts(&self, x: &Axis, y: &Axis) -> Vec<Vec<(f64, f64)>> {
        let parts = self.points.split(|(_, value)| value.is_none()).filter(|part| !part.is_empty());
        let place = |(at, value): &(f64, Option<f64>)| value.map(|value| (x.place(*at), y.place(value)));
        parts.map(|part| part.iter().filter_map(place).collect()).collect()
    }
}

/// `marks`: upright lines with a name, at values of x.
pub fn draw(title: &str, x: &Axis, y: &Axis, lines: &[Line], marks: &[(f64, String)]) -> String {
    let entry = |line: &Line| {
        let label = line.label.clone()?;
        Some(LegendEntry { label, style: line.style(), is_dashed: line.is_dashed })
    };
    let legend: Vec<LegendEntry> = lines.iter().filter_map(entry).collect();
    let height = CAPTION_HEIGHT + PLOT_HEIGHT + X_LABEL_HEIGHT + CAPTION_HEIGHT;
    canvas::draw(title, &legend, height, |sheet, top| plot(sheet, top, x, y, lines, marks))
}

fn plot(sheet: &Sheet, top: i32, x: &Axis, y: &Axis, lines: &[Line], marks: &[(f64, String)]) -> Drawn<()> {
    let widest = y.ticks.iter().map(|(_, label)| canvas::width_of(label)).max().unwrap_or_default();
    let (left, right) = (MARGIN + widest + 16, WIDTH - MARGIN - 30);
    let (above, below) = (top + CAPTION_HEIGHT, top + CAPTION_HEIGHT + PLOT_HEIGHT);
    canvas::text(sheet, &y.caption, (MARGIN, top + CAPTION_HEIGHT / 2 + 4), HPos::Left, GREY)?;
    canvas::text(sheet, &x.caption, (right, below + X_LABEL_HEIGHT + CAPTION_HEIGHT / 2), HPos::Right, GREY)?;

    let (_, height) = sheet.dim_in_pixel();
    let area = sheet.clone().shrink((left, above), (right - left, below - above));
    debug_assert!(below < height as i32);
    let mut chart = ChartBuilder::on(&area).build_cartesian_2d(x.from..x.to, y.from..y.to)?;
    // Grid and labels are ours: the library leaves out labels that it thinks too long, by a guess at the width of text.
    let spec = chart.as_coord_spec().clone();
    let on_sheet = |place: (f64, f64)| spec.translate(&place);
    let grid = ShapeStyle::from(GRID).stroke_width(2);
    for (at, label) in &y.ticks {
        let (_, height) = on_sheet((x.from, *at));
        sheet.draw(&PathElement::new([(left, height), (right, height)], grid))?;
        canvas::text(sheet, label, (left - 16, height), HPos::Right, INK)?;
    }
    let mut free_from = i32::MIN;
    for (at, label) in &x.ticks {
        let (middle, _) = on_sheet((*at, y.from));
        sheet.draw(&PathElement::new([(middle, above), (middle, below)], grid))?;
        let half = canvas::width_of(label) / 2;
        if middle - half > free_from {
            canvas::text(sheet, label, (middle, below + X_LABEL_HEIGHT / 2), HPos::Center, INK)?;
            free_from = middle + half + 10;
        }
    }
    sheet.draw(&PathElement::new([(left, below), (right, below)], ShapeStyle::from(GREY).stroke_width(3)))?;
    for (at, name) in marks {
        let (middle, _) = on_sheet((x.place(*at), y.from));
        sheet.draw(&PathElement::new(
            [(middle, above), (middle, below)],
            ShapeStyle::from(GREY).stroke_width(3),
        ))?;
        canvas::text(sheet, name, (middle, above - CAPTION_HEIGHT / 2 + 4), HPos::Right, GREY)?;
    }
    for line in lines {
        for part in line.parts(x, y) {
            if line.has_points || part.len() == 1 {
                let dot = |place: &(f64, f64)| Circle::new(*place, POINT_RADIUS, line.style().filled());
                chart.draw_series(part.iter().map(dot))?;
            }
            if line.is_dashed {
                chart.draw_series(DashedLineSeries::new(part, 16, 12, line.style()))?;
            } else {
                chart.draw_series(LineSeries::new(part, line.style()))?;
            }
        }
    }
    Ok(())
}
