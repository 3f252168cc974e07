//! Building elements. Text becomes text nodes only: nothing from a recording is
//! ever read as HTML, and nothing of it hides or turns the text around it.
//!
//! Tags, names and selectors are our own: the page refuses one only by a fault of ours. The error
//! is then thrown to the page's script, which ends the view.

use gpumem_model::printable::printable_lines;
use gpumem_wording::{Prose, Span};
use wasm_bindgen::{JsCast, JsValue, throw_val};
use web_sys::{Document, Element, HtmlElement, Node};

/// Makes elements of one document.
#[derive(Debug, Clone)]
pub struct Maker(Document);

impl Maker {
    /// Elements for the document in which `root` is.
    pub fn beside(root: &Element) -> Self {
        Self(root.owner_document().expect("an element has a document"))
    }

    /// An element without children: its tag, and its classes as a style sheet writes them (`"div.panel"`).
    pub fn empty(&self, tag: &str, attributes: &[(&str, &str)]) -> Element {
        let (tag, classes) = tag.split_once('.').unwrap_or((tag, ""));
        let element = or_throw(self.0.create_element(tag));
        if !classes.is_empty() {
            element.set_class_name(&classes.replace('.', " "));
        }
        if tag == "button" {
            set_attribute(&element, "type", tag);
        }
        for (name, value) in attributes {
            if *name == "title" || name.starts_with("aria-") {
                describe(&element, name, value);
            } else {
                set_attribute(&element, name, value);
            }
        }
        element
    }

    /// An element that holds a text.
    pub fn text(&self, tag: &str, attributes: &[(&str, &str)], text: &str) -> Element {
        let element = self.empty(tag, attributes);
        add(&element, &self.node(text));
        element
    }

    /// An element that holds elements.
    pub fn group(&self, tag: &str, attributes: &[(&str, &str)], children: &[&Element]) -> Element {
        let element = self.empty(tag, attributes);
        for child in children {
            add(&element, child);
        }
        element
    }

    /// An element that holds a sentence: its code and its figures as elements.
    pub fn prose(&self, tag: &str, attributes: &[(&str, &str)], prose: &Prose) -> Element {
        let element = self.empty(tag, attributes);
        for span in prose.spans() {
            match span {
                Span::Plain(text) => add(&element, &self.node(text)),
                Span::Code(text) => add(&element, &self.text("code", &[], text)),
                Span::Figure(text) => add(&element, &self.text("b", &[], text)),
            }
        }
        element
    }

    /// A button that reads as a link.
    pub fn link(&self, action: &str, argument: &str, label: &str) -> Element {
        let attributes = [("data-action", action), ("data-argument", argument)];
        self.text("button.link", &attributes, label)
    }

    /// A button of that action.
    pub fn button(&self, action: &str, argument: &str, label: &str) -> Element {
        let attributes = [("data-action", action), ("data-argument", argument)];
        self.text("button", &attributes, label)
    }

    /// A group of buttons, which is still empty.
    pub fn segments(&self, label: &str) -> Element {
        self.empty("div.segments", &[("role", "group"), ("aria-label", label)])
    }

    /// What the colour of a class stands for.
    pub fn legend_entry(&self, class: &str, words: &str) -> Element {
        let swatch = self.empty("i", &[("class", class)]);
        self.group("span", &[], &[&swatch, &self.text("span", &[], words)])
    }

    /// An element of a kind that the page knows more of.
    pub fn typed<T: JsCast>(&self, tag: &str, attributes: &[(&str, &str)]) -> T {
        self.empty(tag, attributes).unchecked_into()
    }

    fn node(&self, text: &str) -> Node {
        self.0.create_text_node(&printable_lines(text)).into()
    }
}

/// What the page answered; its error is thrown.
pub fn or_throw<T>(answer: Result<T, JsValue>) -> T {
    answer.unwrap_or_else(|error| throw_val(error))
}

/// Puts a child after the others.
pub fn add(element: &Element, child: &Node) {
    or_throw(element.append_child(child));
}

/// Takes every child away and puts `children` there.
pub fn fill(element: &Element, children: &[Element]) {
    element.set_text_content(None);
    for child in children {
        add(element, child);
    }
}

/// Replaces the elements; the one with the focused argument gets the focus again.
pub fn refill(element: &Element, children: &[Element]) {
    let before = find(element, ":focus");
    let argument = before.and_then(|it| it.get_attribute("data-argument"));
    fill(element, children);
    let again =
        argument.and_then(|argument| find(element, &format!("[data-argument='{argument}']")));
    if let Some(again) = again {
        focus(&again);
    }
}

/// Puts elements there in this order, and takes the others away. What is in its place stays where it is:
/// the keyboard stays on it.
pub fn put(list: &Element, elements: &[Element]) {
    let mut at = list.first_element_child();
    for element in elements {
        if at.as_ref() == Some(element) {
            at = element.next_element_sibling();
        } else {
            or_throw(list.insert_before(element, at.as_ref().map(AsRef::as_ref)));
        }
    }
    while let Some(rest) = at {
        at = rest.next_element_sibling();
        rest.remove();
    }
}

/// The first element inside that fits the selector.
pub fn find(element: &Element, selector: &str) -> Option<Element> {
    or_throw(element.query_selector(selector))
}

/// Brings the keyboard to an element.
pub fn focus(element: &Element) {
    or_throw(element.unchecked_ref::<HtmlElement>().focus());
}

/// Replaces an element's text.
pub fn write(element: &Element, text: &str) {
    element.set_text_content(Some(&printable_lines(text)));
}

/// Sets an attribute.
pub fn set_attribute(element: &Element, name: &str, value: &str) {
    or_throw(element.set_attribute(name, value));
}

/// Sets an attribute that is read out or shown beside the pointer.
pub fn describe(element: &Element, name: &str, text: &str) {
    set_attribute(element, name, &printable_lines(text));
}

/// Sets an attribute that is there or not.
pub fn flag(element: &Element, name: &str, on: bool) {
    or_throw(element.toggle_attribute_with_force(name, on));
}

/// Sets an attribute that is `true` or `false`, as those of ARIA are.
pub fn set_bool(element: &Element, name: &str, on: bool) {
    set_attribute(element, name, if on { "true" } else { "false" });
}

/// Sets a property of an element's style.
pub fn set_style(element: &HtmlElement, property: &str, value: &str) {
    or_throw(element.style().set_property(property, value));
}

/// How much of its track a bar takes up.
pub fn share(bar: &HtmlElement, share: f64) {
    set_style(bar, "--share", &format!("{:.5}", share.min(1.0)));
}
