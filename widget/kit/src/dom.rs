//! Building elements. Text becomes text nodes only: nothing from a recording is
//! ever read as HTML, and nothing of it hides or turns the text around it.

use gpumem_core::printable::printable_lines;
use wasm_bindgen::{JsCast, JsValue, throw_str, throw_val};
use web_sys::{Document, Element, HtmlElement, Node};

/// The outcome of asking the page for something. What the page refuses is thrown at once: to hand it on
/// through every caller took a tenth of the module, and the page's script ends the view either way.
pub type Dom<T> = Result<T, Thrown>;

/// An error that was thrown: nobody ever has one.
#[derive(Debug)]
pub enum Thrown {}

impl From<JsValue> for Thrown {
    #[inline]
    fn from(error: JsValue) -> Self {
        throw_val(error)
    }
}

impl From<&str> for Thrown {
    #[inline]
    fn from(error: &str) -> Self {
        throw_str(error)
    }
}

impl From<Thrown> for JsValue {
    #[inline]
    fn from(thrown: Thrown) -> Self {
        match thrown {}
    }
}

/// Makes elements of one document.
#[derive(Debug, Clone)]
pub struct Maker(Document);

impl Maker {
    /// Elements for the document in which `root` is.
    #[inline]
    pub fn beside(root: &Element) -> Dom<Self> {
        let document = root.owner_document();
        document.map(Self).ok_or_else(|| "no document".into())
    }

    /// An element without children: its tag, and its classes as a style sheet writes them (`"div.panel"`).
    #[inline]
    pub fn empty(&self, tag: &str, attributes: &[(&str, &str)]) -> Dom<Element> {
        let (tag, classes) = tag.split_once('.').unwrap_or((tag, ""));
        let element = self.0.create_element(tag)?;
        if !classes.is_empty() {
            element.set_class_name(&classes.replace('.', " "));
        }
        if tag == "button" {
            element.set_attribute("type", tag)?;
        }
        with(element, attributes)
    }

    /// An element that holds a text.
    #[inline]
    pub fn text(&self, tag: &str, attributes: &[(&str, &str)], text: &str) -> Dom<Element> {
        let element = self.empty(tag, attributes)?;
        element.append_child(&self.0.create_text_node(&printable_lines(text)))?;
        Ok(element)
    }

    /// An element that holds elements.
    #[inline]
    pub fn group(
        &self,
        tag: &str,
        attributes: &[(&str, &str)],
        children: &[&Element],
    ) -> Dom<Element> {
        let element = self.empty(tag, attributes)?;
        for child in children {
            add(&element, child)?;
        }
        Ok(element)
    }

    /// An element that holds prose in which `` `backticks` `` mark code, and `**` what stands out.
    #[inline]
    pub fn prose(&self, tag: &str, attributes: &[(&str, &str)], prose: &str) -> Dom<Element> {
        let element = self.empty(tag, attributes)?;
        for (idx, part) in prose.split('`').enumerate() {
            if idx % 2 == 1 {
                add(&element, &self.text("code", &[], part)?)?;
                continue;
            }
            for (idx, words) in part.split("**").enumerate() {
                let node: Node = if idx % 2 == 1 {
                    self.text("b", &[], words)?.into()
                } else {
                    self.0.create_text_node(&printable_lines(words)).into()
                };
                element.append_child(&node)?;
            }
        }
        Ok(element)
    }

    /// A button that reads as a link.
    #[inline]
    pub fn link(&self, action: &str, argument: &str, label: &str) -> Dom<Element> {
        let attributes = [("data-action", action), ("data-argument", argument)];
        self.text("button.link", &attributes, label)
    }

    /// An element of a kind that the page knows more of.
    #[inline]
    pub fn typed<T: JsCast>(&self, tag: &str, attributes: &[(&str, &str)]) -> Dom<T> {
        let element = self.empty(tag, attributes)?;
        Ok(element.dyn_into().map_err(JsValue::from)?)
    }
}

/// Puts a child after the others.
#[inline]
pub fn add(element: &Element, child: &Element) -> Dom<()> {
    Ok(element.append_child(child).map(drop)?)
}

/// Takes every child away and puts `children` there.
#[inline]
pub fn fill(element: &Element, children: &[Element]) -> Dom<()> {
    element.set_text_content(None);
    for child in children {
        add(element, child)?;
    }
    Ok(())
}

/// Puts other elements there; the one with the argument of what had the keyboard has it again.
#[inline]
pub fn refill(element: &Element, children: &[Element]) -> Dom<()> {
    let before = element.query_selector(":focus")?;
    let argument = before.and_then(|it| it.get_attribute("data-argument"));
    fill(element, children)?;
    if let Some(argument) = argument {
        let again = element.query_selector(&format!("[data-argument='{argument}']"))?;
        if let Some(again) = again {
            again.unchecked_ref::<HtmlElement>().focus()?;
        }
    }
    Ok(())
}

/// Puts elements there in this order, and takes the others away. What is in its place stays where it is:
/// the keyboard stays on it.
#[inline]
pub fn put(list: &Element, elements: &[Element]) -> Dom<()> {
    let mut at = list.first_element_child();
    for element in elements {
        if at.as_ref() == Some(element) {
            at = element.next_element_sibling();
        } else {
            list.insert_before(element, at.as_ref().map(AsRef::as_ref))?;
        }
    }
    while let Some(rest) = at {
        at = rest.next_element_sibling();
        rest.remove();
    }
    Ok(())
}

/// Replaces an element's text.
#[inline]
pub fn write(element: &Element, text: &str) {
    element.set_text_content(Some(&printable_lines(text)));
}

/// Sets an attribute that is read out or shown beside the pointer.
#[inline]
pub fn describe(element: &Element, name: &str, text: &str) -> Dom<()> {
    Ok(element.set_attribute(name, &printable_lines(text))?)
}

/// Sets an attribute that is there or not.
#[inline]
pub fn flag(element: &Element, name: &str, on: bool) -> Dom<()> {
    Ok(element.toggle_attribute_with_force(name, on).map(drop)?)
}

/// How much of its track a bar takes up.
#[inline]
pub fn share(bar: &HtmlElement, share: f64) -> Dom<()> {
    let share = share.min(1.0);
    Ok(bar
        .style()
        .set_property("--share", &format!("{share:.5}"))?)
}

#[inline]
fn with(element: Element, attributes: &[(&str, &str)]) -> Dom<Element> {
    for (name, value) in attributes {
        if *name == "title" || name.starts_with("aria-") {
            describe(&element, name, value)?;
        } else {
            element.set_attribute(name, value)?;
        }
    }
    Ok(element)
}
