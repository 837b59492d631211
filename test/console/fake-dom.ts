/**
 * As much of a browser's document as the console uses, and no more: what it does not have, the
 * console must not need. There is no way to make markup of text; who tries fails.
 */

type Listener = (event: FakeEvent) => void;

export interface FakeEvent {
  readonly target: FakeElement;
  readonly key?: string;
  readonly ctrlKey?: boolean;
  preventDefault(): void;
}

class FakeText {
  parent: FakeElement | undefined;
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type FakeNode = FakeElement | FakeText;

/** Reflected, as a browser does: the attribute is what it begins with. */
const flags = ['disabled', 'checked', 'selected', 'hidden', 'open'] as const;

export class FakeElement {
  readonly tag: string;
  readonly attributes = new Map<string, string>();
  children: FakeNode[] = [];
  parent: FakeElement | undefined;
  disabled = false;
  checked = false;
  hidden = false;
  open = false;
  selected = false;
  selectionStart = 0;
  selectionEnd = 0;
  #value: string | undefined;
  readonly #listeners = new Map<string, Listener[]>();

  constructor(tag: string) {
    this.tag = tag;
  }

  get value(): string {
    if (this.tag !== 'select') return this.#value ?? this.attributes.get('value') ?? '';
    const options = this.all('option');
    const chosen = options.find(({ selected }) => selected) ?? options[0];
    return this.#value ?? chosen?.attributes.get('value') ?? '';
  }

  set value(text: string) {
    this.#value = text;
  }

  get textContent(): string {
    return this.children
      .map((child) => (child instanceof FakeText ? child.text : child.textContent))
      .join('');
  }

  set textContent(text: string) {
    this.replaceChildren(text);
  }

  set innerHTML(text: string) {
    throw new Error(`text was to become markup: ${text}`);
  }

  get firstElementChild(): FakeElement | null {
    return this.#elements()[0] ?? null;
  }

  get nextElementSibling(): FakeElement | null {
    const siblings = this.parent?.children ?? [];
    const after = siblings.slice(siblings.indexOf(this) + 1);
    return after.find((node) => node instanceof FakeElement) ?? null;
  }

  #elements(): FakeElement[] {
    return this.children.filter((child) => child instanceof FakeElement);
  }

  setAttribute(name: string, value: string): void {
    this.attributes.set(name, value);
    for (const flag of flags) if (flag === name) this[flag] = true;
  }

  removeAttribute(name: string): void {
    this.attributes.delete(name);
    for (const flag of flags) if (flag === name) this[flag] = false;
  }

  append(...nodes: (FakeNode | string)[]): void {
    for (const node of nodes) this.#insert(node, this.children.length);
  }

  prepend(...nodes: (FakeNode | string)[]): void {
    for (const node of nodes.reverse()) this.#insert(node, 0);
  }

  insertBefore(node: FakeElement, before: FakeElement | null): void {
    node.remove();
    this.#insert(node, before === null ? this.children.length : this.children.indexOf(before));
  }

  #insert(given: FakeNode | string, index: number): void {
    const node = typeof given === 'string' ? new FakeText(given) : given;
    if (node instanceof FakeElement) node.remove();
    node.parent = this;
    this.children.splice(index, 0, node);
  }

  replaceChildren(...nodes: (FakeNode | string)[]): void {
    for (const child of this.children) child.parent = undefined;
    this.children = [];
    this.append(...nodes);
  }

  remove(): void {
    const siblings = this.parent?.children;
    if (siblings !== undefined) siblings.splice(siblings.indexOf(this), 1);
    this.parent = undefined;
  }

  addEventListener(type: string, listener: Listener): void {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  /** Gives whether the event's own effect was called off. */
  fire(type: string, more: Partial<FakeEvent> = {}): boolean {
    let isPrevented = false;
    const preventDefault = (): void => {
      isPrevented = true;
    };
    for (const listener of this.#listeners.get(type) ?? []) {
      listener({ target: this, ...more, preventDefault });
    }
    return isPrevented;
  }

  click(): void {
    if (this.disabled) return;
    this.fire('click');
    if (this.tag === 'button' && this.attributes.get('type') === 'submit') this.submit();
  }

  /** Submits the form around; one that the browser itself would send is a failure. */
  submit(): void {
    let form: FakeElement | undefined = this;
    while (form !== undefined && form.tag !== 'form') form = form.parent;
    if (form?.fire('submit') === false) throw new Error('a form was sent by the browser');
  }

  focus(): void {}

  setSelectionRange(start: number, end: number): void {
    this.selectionStart = start;
    this.selectionEnd = end;
  }

  showModal(): void {
    this.open = true;
  }

  close(): void {
    this.open = false;
  }

  querySelector(tag: string): FakeElement | null {
    return this.all(tag)[0] ?? null;
  }

  /** Every element of a tag below this one, in the document's order. */
  all(tag = '*'): FakeElement[] {
    return this.#elements().flatMap((child) => [
      ...(tag === '*' || child.tag === tag ? [child] : []),
      ...child.all(tag),
    ]);
  }
}

/** A document and where its page is shown. */
export interface FakeDocument {
  readonly body: FakeElement;
  createElement(tag: string): FakeElement;
}

/** An empty document. */
export function createFakeDocument(): FakeDocument {
  return { body: new FakeElement('body'), createElement: (tag) => new FakeElement(tag) };
}
