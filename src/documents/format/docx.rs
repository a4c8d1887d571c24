//! Converts DOCX, a zip with XML, to markdown. Only the body and the styles are unpacked, each up to a limit.
//! Entities other than the five of XML are ignored, and nothing is fetched.
//!
//! Source: ECMA-376, Office Open XML, part 1, 17.3 (paragraphs), 17.4 (tables) and 17.7 (styles).

use super::super::format::{Page, heading};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;
use std::io::{Cursor, Read};

const BODY: &str = "word/document.xml";
const STYLES: &str = "word/styles.xml";
/// Most unpacked bytes of each part.
const MAX_UNPACKED: u64 = 16 << 20;
/// Deepest nesting of elements; a normal document has about thirty levels.
const MAX_DEPTH: usize = 500;

const NO_DOCX: &str = "it is not a DOCX: no zip with a document in it";
const TOO_LARGE: &str = "it unpacks to more than 16 MiB";
const BROKEN: &str = "its XML is damaged";

/// Converts a file to markdown.
pub(super) fn markdown(bytes: &[u8]) -> Result<String, &'static str> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|_| NO_DOCX)?;
    let body = unpack(&mut archive, BODY)?.ok_or(NO_DOCX)?;
    let levels = match unpack(&mut archive, STYLES)? {
        Some(styles) => levels(&styles)?,
        None => BTreeMap::new(),
    };
    text(&body, &levels)
}

/// Unpacks a part; `None` if it does not exist.
fn unpack(archive: &mut zip::ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<Option<String>, &'static str> {
    let Ok(part) = archive.by_name(name) else { return Ok(None) };
    let mut bytes = Vec::new();
    // the size in its header is not trusted
    part.take(MAX_UNPACKED + 1).read_to_end(&mut bytes).map_err(|_| "its zip is damaged")?;
    if bytes.len() as u64 > MAX_UNPACKED {
        return Err(TOO_LARGE);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| BROKEN)
}

/// Returns the value of an attribute, by its name without prefix.
fn value(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = element.attributes().flatten().find(|one| one.key.local_name().as_ref() == name.as_bytes())?;
    Some(String::from_utf8_lossy(&found.value).into_owned())
}

/// Returns the levels of heading styles, by style id. The name of a style is the same in every language (`heading
/// 1`), its id is not.
fn levels(styles: &str) -> Result<BTreeMap<String, usize>, &'static str> {
    let mut levels = BTreeMap::new();
    let mut style = None;
    let mut reader = Reader::from_str(styles);
    loop {
        match reader.read_event().map_err(|_| BROKEN)? {
            Event::Start(element) | Event::Empty(element) => match element.local_name().as_ref() {
                b"style" => style = value(&element, "styleId"),
                b"name" => {
                    let name = value(&element, "val").unwrap_or_default().to_lowercase();
                    let level = match name.strip_prefix("heading ") {
                        Some(level) => level.trim().parse().ok(),
                        None => (name == "title").then_some(1),
                    };
                    if let (Some(id), Some(level)) = (&style, level) {
                        levels.insert(id.clone(), level);
                    }
                }
                _ => {}
            },
            Event::Eof => return Ok(levels),
            _ => {}
        }
    }
}

/// Converts the body to markdown.
fn text(body: &str, levels: &BTreeMap<String, usize>) -> Result<String, &'static str> {
    let mut page = Page::default();
    let mut reader = Reader::from_str(body);
    // alternatives for older programs; text of a run; nesting of elements and of table cells
    let (mut fallbacks, mut in_text, mut depth, mut cells) = (0usize, false, 0usize, 0usize);
    loop {
        match reader.read_event().map_err(|_| BROKEN)? {
            Event::Start(element) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err("its XML is nested too deep");
                }
                match element.local_name().as_ref() {
                    b"Fallback" => fallbacks += 1,
                    b"p" if cells == 0 => page.begin(""),
                    b"tc" => cells += 1,
                    b"tr" => page.begin(""),
                    b"t" => in_text = true,
                    name => apply_element(name, &element, levels, &mut page),
                }
            }
            Event::Empty(element) => apply_element(element.local_name().as_ref(), &element, levels, &mut page),
            Event::End(element) => {
                depth = depth.saturating_sub(1);
                match element.local_name().as_ref() {
                    b"Fallback" => fallbacks = fallbacks.saturating_sub(1),
                    b"t" => in_text = false,
                    // a table row is one line
                    b"p" if cells > 0 => page.push(" "),
                    b"p" | b"tr" => page.begin(""),
                    b"tc" => {
                        cells = cells.saturating_sub(1);
                        page.push(" | ");
                    }
                    _ => {}
                }
            }
            Event::Text(words) if in_text && fallbacks == 0 => page.push(&words.decode().map_err(|_| BROKEN)?),
            Event::CData(words) if in_text && fallbacks == 0 => page.push(&String::from_utf8_lossy(&words)),
            Event::GeneralRef(reference) if in_text && fallbacks == 0 => {
                let named = reference.decode().map_err(|_| BROKEN)?;
                let character = match reference.resolve_char_ref() {
                    Ok(Some(character)) => character.to_string(),
                    _ => quick_xml::escape::resolve_predefined_entity(&named).unwrap_or_default().to_owned(),
                };
                page.push(&character);
            }
            Event::Eof => return Ok(page.end()),
            _ => {}
        }
    }
}

/// Handles an element without text: the style of a paragraph, a break.
fn apply_element(name: &[u8], element: &BytesStart<'_>, levels: &BTreeMap<String, usize>, page: &mut Page) {
    match name {
        b"pStyle" => {
            let style = value(element, "val").unwrap_or_default();
            if let Some(level) = levels.get(&style) {
                page.mark = heading(*level);
            }
        }
        b"numPr" if page.mark.is_empty() => page.mark = "- ".into(),
        b"br" | b"tab" | b"cr" => page.push(" "),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packed(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in parts {
            let how = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
            archive.start_file(*name, how).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    #[test]
    fn headings_lists_and_tables_are_kept() {
        let styles = r#"<w:styles xmlns:w="w"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style></w:styles>"#;
        let body = r#"<?xml version="1.0"?><w:document xmlns:w="w" xmlns:mc="mc"><w:body>
            <w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Backups</w:t></w:r></w:p>
            <w:p><w:r><w:t xml:space="preserve">The disk is </w:t></w:r><w:r><w:t>sdb1 &amp; sdc1&#33;</w:t></w:r></w:p>
            <w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>one</w:t><w:br/><w:t>more</w:t></w:r></w:p>
            <w:p><w:r><w:delText>gone</w:delText><w:instrText>TOC</w:instrText></w:r></w:p>
            <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
            <w:p><mc:Fallback><w:t>twice</w:t></mc:Fallback></w:p></w:body></w:document>"#;
        let text = markdown(&packed(&[(BODY, body), (STYLES, styles)])).unwrap();
        assert_eq!(text, "# Backups\n\nThe disk is sdb1 & sdc1!\n\n- one more\n\na | b |\n");
    }

    #[test]
    fn a_hostile_file_is_rejected() {
        assert_eq!(markdown(b"PK no zip"), Err(NO_DOCX));
        assert_eq!(markdown(&packed(&[("other.xml", "x")])), Err(NO_DOCX));
        // 17 MiB in 20 kB
        let bomb = packed(&[(BODY, &"<".repeat(17 << 20))]);
        assert!(bomb.len() < 100 << 10);
        assert_eq!(markdown(&bomb), Err(TOO_LARGE));
        assert_eq!(markdown(&packed(&[(BODY, &"<p>".repeat(2000))])), Err("its XML is nested too deep"));
        let laughs = "<!DOCTYPE d [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><d><t>&b; and &quot;</t></d>";
        assert_eq!(markdown(&packed(&[(BODY, laughs)])).unwrap(), "and \"\n");
        for cut in [10, 100, 400] {
            let whole = packed(&[(BODY, "<w:document><w:t>text</w:t></w:document>")]);
            let _ = markdown(&whole[..whole.len().min(cut)]);
        }
    }
}
