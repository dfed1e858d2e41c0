//! Lying bars over one axis, in groups.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::canvas::{self, Drawn, GREY, GRID, INK, LegendEntry, MARGIN, Sheet, WIDTH};

const BAR_HEIGHT: i32 = 40;
const BAR_GAP: i32 = 8;
const GROUP_GAP: i32 = 34;
const AXIS_HEIGHT: i32 = 100;
const POINT_RADIUS: i32 = 6;

pub struct Group {
    pub label: String,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    /// One after the other, from zero.
    pub parts: Vec<(f64, RGBColor)>,
    /// Single values that the bar stands for, drawn on it together with the line from the least to the greatest.
    pub samples: Vec<f64>,
    /// What stands behind the bar.
    pub note: String,
}

impl Bar {
    /// Its end, or the greatest of its samples.
    pub fn greatest(&self) -> f64 {
        let length: f64 = self.parts.iter().map(|(length, _)| length).sum();
        self.samples.iter().copied().fold(length, f64::max)
    }
}

/// `legend`: what each colour means.
pub fn draw(title: &str, axis: &Axis, groups: &[Group], legend: &[(String, RGBColor)]) -> String {
    let entry = |(label, colour): &(String, RGBColor)| LegendEntry {
        label: label.clone(),
        style: ShapeStyle::from(*colour).stroke_width(24),
        is_dashed: false,
    };
    let legend: Vec<LegendEntry> = legend.iter().map(entry).collect();
    let height = groups.iter().map(group_height).sum::<i32>() + AXIS_HEIGHT;
    canvas::draw(title, &legend, height, |sheet, top| plot(sheet, top, axis, groups))
}

fn group_height(group: &Group) -> i32 {
    group.bars.len() as i32 * (BAR_HEIGHT + BAR_GAP) + GROUP_GAP
}

fn plot(sheet: &Sheet, top: i32, axis: &Axis, groups: &[Group]) -> Drawn<()> {
    let widest = |texts: &mut dyn Iterator<Item = &String>| {
        texts.map(|text| canvas::width_of(text)).max().unwrap_or(0)
    };
    let names = widest(&mut groups.iter().map(|group| &group.label));
    let notes = widest(&mut groups.iter().flat_map(|group| group.bars.iter().map(|bar| &bar.note)));
    let (left, right) = (MARGIN + names + 20, WIDTH - MARGIN - notes - 20);
    let below = top + groups.iter().map(group_height).sum::<i32>();
    let across = |value: f64| left + (axis.place(value) / axis.to * f64::from(right - left)).round() as i32;
    for (at, label) in &axis.ticks {
        let x = across(*at);
        sheet.draw(&PathElement::new([(x, top), (x, below)], ShapeStyle::from(GRID).stroke_width(2)))?;
        canvas::text(sheet, label, (x, below + 24), HPos::Center, INK)?;
    }
    canvas::text(sheet, &axis.caption, (right, below + 72), HPos::Right, GREY)?;
    let mut y = top + GROUP_GAP / 2;
    for group in groups {
        let middle = y + (group_height(group) - GROUP_GAP - BAR_GAP) / 2;
        canvas::text(sheet, &group.label, (left - 20, middle), HPos::Right, INK)?;
        for bar in &group.bars {
            draw_bar(sheet, bar, y, across)?;
            y += BAR_HEIGHT + BAR_GAP;
        }
        y += GROUP_GAP;
    }
    sheet.draw(&PathElement::new([(left, top), (left, below)], ShapeStyle::from(GREY).stroke_width(3)))
}

fn draw_bar(sheet: &Sheet, bar: &Bar, y: i32, across: impl Fn(f64) -> i32) -> Drawn<()> {
    let mut end = 0.0;
    for (length, colour) in &bar.parts {
        let corners = [(across(end), y), (across(end + length), y + BAR_HEIGHT)];
        sheet.draw(&Rectangle::new(corners, colour.filled()))?;
        end += length;
    }
    let middle = y + BAR_HEIGHT / 2;
    let least = bar.samples.iter().copied().fold(f64::INFINITY, f64::min);
    if least.is_finite() {
        let style = ShapeStyle::from(INK).stroke_width(3);
        sheet.draw(&PathElement::new(
            [(across(least), middle), (across(bar.greatest_sample()), middle)],
            style,
        ))?;
        for sample in &bar.samples {
            sheet.draw(&Circle::new((across(*sample), middle), POINT_RADIUS, INK.filled()))?;
        }
    }
    canvas::text(sheet, &bar.note, (across(bar.greatest()) + 20, middle), HPos::Left, INK)
}

impl Bar {
    fn greatest_sample(&self) -> f64 {
        self.samples.iter().copied().fold(0.0, f64::max)
    }
}
