//! The sheet that every picture is drawn on: its sizes, its colours, its text.
//!
//! Half a pixel is the unit of all sizes here: the backend knows whole numbers only, and whole pixels make a line of
//! many points look like stairs.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::FontStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub const BLUE: RGBColor = RGBColor(0, 98, 168);
pub const PALE_BLUE: RGBColor = RGBColor(134, 182, 219);
pub const ORANGE: RGBColor = RGBColor(214, 90, 10);
pub const PALE_ORANGE: RGBColor = RGBColor(244, 176, 122);
pub const GREY: RGBColor = RGBColor(120, 126, 134);
pub const INK: RGBColor = RGBColor(31, 36, 43);
pub const GRID: RGBColor = RGBColor(228, 231, 235);

pub const WIDTH: i32 = 1_640;
/// From the edge of the sheet to anything drawn.
pub const MARGIN: i32 = 36;
/// Sizes of text, as the backend takes them; it writes them a quarter smaller.
pub const TEXT: i32 = 32;
const TITLE: i32 = 42;
const TITLE_HEIGHT: i32 = 66;
const LEGEND_HEIGHT: i32 = 42;
const SWATCH: i32 = 44;

pub type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub type Drawn<T> = Result<T, DrawingAreaErrorKind<std::io::Error>>;

/// A name beside a piece of line.
pub struct LegendEntry {
    pub label: String,
    pub style: ShapeStyle,
    pub is_dashed: bool,
}

/// A white sheet of `height` with `title`; `draw` gets it together with the first free y, below the title and legend.
pub fn draw(
    title: &str,
    legend: &[LegendEntry],
    height: i32,
    draw: impl FnOnce(&Sheet, i32) -> Drawn<()>,
) -> String {
    let mut svg = String::new();
    let height = height + TITLE_HEIGHT + legend_rows(legend) * LEGEND_HEIGHT + MARGIN;
    {
        let sheet = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32)).into_drawing_area();
        let fill = || {
            sheet.fill(&WHITE)?;
            sheet.draw(&Text::new(title.to_owned(), (MARGIN, MARGIN), font(TITLE, INK, FontStyle::Bold)))?;
            let below = draw_legend(&sheet, legend, MARGIN + TITLE_HEIGHT)?;
            draw(&sheet, below)?;
            sheet.present()
        };
        fill().expect("writing to memory does not fail");
    }
    let size = format!(r#"<svg width="{WIDTH}" height="{height}""#);
    let shown = format!(r#"<svg width="{}" height="{}" role="img""#, WIDTH / 2, height / 2);
    svg.replacen(&size, &shown, 1)
}

/// `at`: the middle of the left side, of the right side or of the whole, as `horizontal` says.
pub fn text(sheet: &Sheet, text: &str, at: (i32, i32), horizontal: HPos, colour: RGBColor) -> Drawn<()> {
    let style = font(TEXT, colour, FontStyle::Normal).pos(Pos::new(horizontal, VPos::Center));
    sheet.draw(&Text::new(text.to_owned(), at, style))
}

/// Wide enough for `text` in any usual sans-serif face.
pub fn width_of(text: &str) -> i32 {
    text.chars().count() as i32 * TEXT * 50 / 100
}

fn font(size: i32, colour: RGBColor, style: FontStyle) -> TextStyle<'static> {
    let color = colour.to_backend_color();
    TextStyle { color, ..TextStyle::from(FontDesc::new(FontFamily::SansSerif, f64::from(size), style)) }
}

fn entry_width(entry: &LegendEntry) -> i32 {
    SWATCH + 14 + width_of(&entry.label) + 36
}

/// Where each entry stands, from the left end of its row, and in which row.
fn legend_places(legend: &[LegendEntry]) -> Vec<(i32, i32)> {
    let (mut x, mut row) = (0, 0);
    let mut places = Vec::new();
    for entry in legend {
        let width = entry_width(entry);
        if x > 0 && x + width > WIDTH - 2 * MARGIN {
            (x, row) = (0, row + 1);
        }
        places.push((x, row));
        x += width;
    }
    places
}

fn legend_rows(legend: &[LegendEntry]) -> i32 {
    legend_places(legend).last().map_or(0, |(_, row)| row + 1)
}

fn draw_legend(sheet: &Sheet, legend: &[LegendEntry], top: i32) -> Drawn<i32> {
    for (entry, (x, row)) in legend.iter().zip(legend_places(legend)) {
        let (x, y) = (MARGIN + x, top + row * LEGEND_HEIGHT + LEGEND_HEIGHT / 2);
        let pieces = if entry.is_dashed { vec![(0, 16), (28, SWATCH)] } else { vec![(0, SWATCH)] };
        for (from, to) in pieces {
            sheet.draw(&PathElement::new([(x + from, y), (x + to, y)], entry.style))?;
        }
        text(sheet, &entry.label, (x + SWATCH + 14, y), HPos::Left, INK)?;
    }
    Ok(top + legend_rows(legend) * LEGEND_HEIGHT)
}
