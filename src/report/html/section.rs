//! What a page is made of: sections of text, tables, charts and trees.

use minijinja::{Value, context};

use crate::report::escape::plain;

/// One section of the page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// The anchor: ours, never foreign text.
    pub id: &'static str,
    /// The heading.
    pub title: String,
    /// Its content, in order.
    pub blocks: Vec<Block>,
}

/// One piece of a section.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    /// A paragraph.
    Text(String),
    /// A heading within the section.
    Heading(String),
    /// A list of sentences.
    List(Vec<String>),
    /// A command line or the like, set as code.
    Code(String),
    /// A table of text.
    Table(Table),
    /// A chart: SVG of ours, its caption, and whether it takes the whole width.
    Chart { svg: String, caption: String, wide: bool },
    /// HTML of ours, in which foreign text is already escaped.
    Html(String),
}

/// A table; a cell may carry the exact figure that it shows rounded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// What it shows, for those who cannot see it.
    pub caption: String,
    /// Column headings.
    pub head: Vec<String>,
    /// Rows, as long as the head.
    pub rows: Vec<Vec<Cell>>,
}

/// A table's cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// What is shown.
    pub text: String,
    /// The exact figure, where the text is a rounded one.
    pub exact: Option<f64>,
    /// A class of ours: the word of a verdict.
    pub class: &'static str,
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Cell { text: text.into(), ..Cell::default() }
    }

    pub fn figure(text: impl Into<String>, exact: Option<f64>) -> Self {
        Cell { text: text.into(), exact, class: "number" }
    }
}

impl Section {
    pub fn new(id: &'static str, title: &str) -> Self {
        Section { id, title: title.to_owned(), blocks: Vec::new() }
    }

    pub fn push(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// The section as the template sees it. Every foreign text passes [`plain`] here, and the
    /// template's own escaping after that.
    pub fn to_value(&self) -> Value {
        let blocks: Vec<Value> = self.blocks.iter().map(Block::to_value).collect();
        context! { id => self.id, title => plain(&self.title), blocks => blocks }
    }
}

impl Block {
    fn to_value(&self) -> Value {
        match self {
            Block::Text(text) => context! { kind => "text", text => plain(text) },
            Block::Heading(text) => context! { kind => "heading", text => plain(text) },
            Block::Code(text) => context! { kind => "code", text => plain(text) },
            Block::List(items) => {
                let items: Vec<String> = items.iter().map(|item| plain(item)).collect();
                context! { kind => "list", items => items }
            }
            Block::Table(table) => table.to_value(),
            Block::Chart { svg, caption, wide } => context! {
                kind => "chart",
                svg => Value::from_safe_string(svg.clone()),
                caption => plain(caption),
                wide => *wide,
            },
            Block::Html(html) => {
                context! { kind => "html", html => Value::from_safe_string(html.clone()) }
            }
        }
    }
}

impl Table {
    fn to_value(&self) -> Value {
        let rows: Vec<Vec<Value>> = self
            .rows
            .iter()
            .map(|row| {
                row.iter()
                    .map(|cell| {
                        let exact = cell.exact.map(|exact| exact.to_string());
                        context! { text => plain(&cell.text), exact => exact, class => cell.class }
                    })
                    .collect()
            })
            .collect();
        let head: Vec<String> = self.head.iter().map(|text| plain(text)).collect();
        context! { kind => "table", caption => plain(&self.caption), head => head, rows => rows }
    }
}
