// SPDX-License-Identifier: Apache-2.0
// Elements, without markup in strings: texts of clients and of the network are never parsed.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) {
      element.addEventListener(name.slice(2), value);
    } else if (value !== undefined && value !== null && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Makes an element of HTML. */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Makes an element of SVG. */
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export function byId(id) {
  return document.getElementById(id);
}

/** Sets the text of an element if it differs, so that selections survive. */
export function text(element, value) {
  const wanted = String(value);
  if (element.textContent !== wanted) {
    element.textContent = wanted;
  }
}

export function toggle(element, name, on) {
  if (element.hasAttribute(name) !== Boolean(on)) {
    element.toggleAttribute(name, Boolean(on));
  }
}

/** Sets an attribute if it differs. */
export function set(element, name, value) {
  const wanted = String(value);
  if (element.getAttribute(name) !== wanted) {
    element.setAttribute(name, wanted);
  }
}

/**
 * Makes the children of an element those of a list, in its order. Each item has a key; the element of a key is made once by
 * `create` and then updated in place, so that focus and selections survive.
 */
export function keyed(parent, items, keyOf, create, update) {
  const known = parent.keyedChildren ?? new Map();
  const present = new Map();
  let place = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    if (present.has(key)) {
      continue;
    }
    const element = known.get(key) ?? create(item);
    present.set(key, element);
    update(element, item);
    if (element === place) {
      place = place.nextSibling;
    } else {
      parent.insertBefore(element, place);
    }
  }
  for (const [key, element] of known) {
    if (!present.has(key)) {
      element.remove();
    }
  }
  parent.keyedChildren = present;
}
