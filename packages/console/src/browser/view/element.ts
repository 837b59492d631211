/**
 * The only way by which the console makes elements: whatever a server or a user wrote becomes text,
 * never markup. No attribute that runs or loads anything can be set, and links stay on the page.
 */

type Tag =
  | ('a' | 'abbr' | 'aside' | 'button' | 'code' | 'datalist' | 'dd' | 'details' | 'dialog' | 'div')
  | ('dl' | 'dt' | 'em' | 'fieldset' | 'form' | 'h1' | 'h2' | 'h3' | 'header' | 'input' | 'kbd')
  | ('label' | 'legend' | 'li' | 'main' | 'nav' | 'ol' | 'option' | 'output' | 'p' | 'pre')
  | ('section' | 'select' | 'small' | 'span' | 'strong' | 'summary' | 'table' | 'tbody' | 'td')
  | ('textarea' | 'th' | 'thead' | 'tr' | 'ul');

type Attribute =
  | ('autocomplete' | 'autofocus' | 'checked' | 'class' | 'colspan' | 'disabled' | 'for' | 'hidden')
  | ('href' | 'id' | 'inputmode' | 'list' | 'min' | 'name' | 'open' | 'placeholder' | 'readonly')
  | ('required' | 'role' | 'rows' | 'scope' | 'selected' | 'spellcheck' | 'tabindex' | 'title')
  | ('type' | 'value' | 'wrap')
  | `aria-${string}`;

/** `true` sets an attribute without a value; `false` and `undefined` leave it out. */
export type Attributes = { readonly [name in Attribute]?: string | boolean | undefined };

export type Child = Node | string | undefined | false;

/** Makes an element. Throws for a link that leads off the page, which would be a mistake of ours. */
export function element<T extends Tag>(
  tag: T,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[T] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(made, name, value);
  made.append(...children.filter(isShown));
  return made;
}

/** Sets an attribute, or takes it away. */
export function setAttribute(
  target: Element,
  name: string,
  value: string | boolean | undefined,
): void {
  if (value === undefined || value === false) {
    target.removeAttribute(name);
    return;
  }
  if (name === 'href' && !(typeof value === 'string' && value.startsWith('#'))) {
    throw new Error('a link of the console has to stay on its page');
  }
  target.setAttribute(name, value === true ? '' : value);
}

/** Puts other children in the place of those that are there. */
export function fill(target: Element, ...children: readonly Child[]): void {
  target.replaceChildren(...children.filter(isShown));
}

function isShown(child: Child): child is Node | string {
  return child !== undefined && child !== false && child !== '';
}

/** A button that does something; `act` may take its time, and the button is off meanwhile. */
export function button(
  label: string,
  act: () => unknown,
  attributes: Attributes = {},
): HTMLButtonElement {
  const made = element('button', { type: 'button', ...attributes }, label);
  made.addEventListener('click', () => {
    const outcome = act();
    if (!(outcome instanceof Promise)) return;
    made.disabled = true;
    void outcome.finally(() => {
      made.disabled = false;
    });
  });
  return made;
}

/** A form that is never sent by the browser itself. */
export function form(
  attributes: Attributes,
  submit: () => unknown,
  ...children: readonly Child[]
): HTMLFormElement {
  const made = element('form', attributes, ...children);
  made.addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  return made;
}

/** An input with its label; the label is what a screen reader says of it. */
export function labelled(
  text: string,
  input: HTMLElement,
  attributes: Attributes = {},
): HTMLElement {
  return element('label', { class: 'field', ...attributes }, element('span', {}, text), input);
}

/** A choice of one of several texts. */
export function choice(
  options: readonly (readonly [value: string, label: string])[],
  chosen: string,
): HTMLSelectElement {
  return element(
    'select',
    {},
    ...options.map(([value, label]) =>
      element('option', { value, selected: value === chosen }, label),
    ),
  );
}
