import type { JsonValue } from '@wheelhouse/machinery/browser';
import { changesBetween, rebased, threeWay } from '../model/changes.ts';
import {
  type Edit,
  type EditOutcome,
  saveEdit,
  validateEdit,
  type WriteMode,
} from '../model/editing.ts';
import { messageOf } from '../model/failure.ts';
import type { ObjectName } from '../model/kinds.ts';
import { type LoadedObject, loadObject } from '../model/object.ts';
import { fieldAt, printYaml, readYaml, withoutManagedFields } from '../model/yaml.ts';
import { changeList, threeWayList } from './change-list.ts';
import type { PageContext } from './context.ts';
import { button, choice, element, fill, labelled } from './element.ts';
import { explainPanel } from './explain-panel.ts';

/** Edits one object as text: the server judges it, by a dry run, before anything is saved. */
export interface Editor {
  readonly root: HTMLElement;
  hasUnsaved(): boolean;
  /** Tells that the object is another one by now. */
  noteChange(resourceVersion: string): void;
}

export interface EditorOptions {
  readonly target: ObjectName;
  /** What the text begins from; undefined for an object that is not there yet. */
  readonly object: LoadedObject | undefined;
  readonly text: string;
  readonly onSaved: (object: LoadedObject) => void;
}

const defaultManager = 'wheelhouse-console';

/** An editor of a text, with what the fields mean beside it. */
export function createEditor(context: PageContext, options: EditorOptions): Editor {
  return new TextEditor(context, options);
}

class TextEditor implements Editor {
  readonly root: HTMLElement;
  readonly #context: PageContext;
  readonly #options: EditorOptions;
  readonly #text: HTMLTextAreaElement;
  readonly #mode: HTMLSelectElement;
  readonly #manager: HTMLInputElement;
  readonly #notice = element('p', { class: 'notice', role: 'status' });
  readonly #result = element('div', { class: 'result', 'aria-live': 'polite' });
  #base: LoadedObject | undefined;
  #saved: string;
  /** How often the server has been asked: of two answers the one to the later question is shown. */
  #asked = 0;

  constructor(context: PageContext, options: EditorOptions) {
    this.#context = context;
    this.#options = options;
    this.#base = options.object;
    this.#saved = options.text;
    const { kind } = options.target;
    const explained = explainPanel(context, kind);
    this.#text = element('textarea', {
      'aria-label': `${kind.kind} as YAML`,
      autocomplete: 'off',
      spellcheck: 'false',
      wrap: 'off',
      rows: '28',
    });
    this.#text.value = options.text;
    this.#mode = choice(this.#modes(), options.object === undefined ? 'create' : 'update');
    this.#manager = element('input', { value: defaultManager, spellcheck: 'false' });
    const place = (): void => explained.show(fieldAt(this.#text.value, this.#text.selectionStart));
    for (const event of ['keyup', 'click']) this.#text.addEventListener(event, place);
    this.#text.addEventListener('keydown', (event) => this.#key(event));
    this.root = element(
      'div',
      { class: 'editor' },
      element('div', { class: 'bar' }, ...this.#tools()),
      this.#notice,
      this.#result,
      element('div', { class: 'split' }, this.#text, explained.root),
    );
  }

  hasUnsaved(): boolean {
    return this.#text.value !== this.#saved;
  }

  noteChange(resourceVersion: string): void {
    const isOther = this.#base !== undefined && this.#base.resourceVersion !== resourceVersion;
    fill(this.#notice, isOther && 'Somebody has changed the object since this text was begun.');
  }

  #modes(): readonly (readonly [WriteMode, string])[] {
    const { verbs } = this.#options.target.kind;
    const known: readonly (readonly [WriteMode, string])[] =
      this.#options.object === undefined
        ? [['create', 'Create']]
        : [
            ['update', 'Replace (PUT)'],
            ['apply', 'Apply (own what is written)'],
          ];
    return known.filter(([mode]) => verbs.includes(mode === 'apply' ? 'patch' : mode));
  }

  #tools(): HTMLElement[] {
    return [
      labelled('Mode', this.#mode),
      labelled('Field manager', this.#manager),
      button('Validate', () => this.#validate(), {
        title: 'Ctrl+Enter: asks the server, saves nothing',
      }),
      button('Save', () => this.#save(), { class: 'primary', title: 'Ctrl+S' }),
      button('Owned fields only', () => this.#reduce(), {
        title: 'Leaves what this field manager needs to say: a text to apply',
        hidden: this.#options.object === undefined,
      }),
    ];
  }

  #key(event: KeyboardEvent): void {
    if (!event.ctrlKey && !event.metaKey) return;
    if (event.key === 'Enter') void this.#validate();
    else if (event.key === 's') void this.#save();
    else return;
    event.preventDefault();
  }

  #edit(ownership: 'respected' | 'forced' = 'respected'): Edit {
    const resourceVersion = this.#base?.resourceVersion;
    return {
      target: this.#options.target,
      mode: this.#mode.value as WriteMode,
      text: this.#text.value,
      fieldManager: this.#manager.value.trim() || defaultManager,
      ownership,
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
  }

  /** A text to apply says only what its writer wants: no status, no fields of the server's own. */
  #reduce(): void {
    const read = readYaml(this.#text.value);
    if (read.fault !== undefined || typeof read.value !== 'object' || read.value === null) return;
    const { status: _, ...object } = read.value as Record<string, never>;
    const { annotations, labels, name, namespace } = (object['metadata'] ?? {}) as Record<
      string,
      never
    >;
    this.#text.value = printYaml({ ...object, metadata: { name, namespace, labels, annotations } });
    this.#mode.value = 'apply';
  }

  async #validate(): Promise<void> {
    fill(this.#result, 'Asking the server…');
    this.#asked += 1;
    const asked = this.#asked;
    const outcome = await validateEdit(this.#context.api, this.#edit());
    if (asked !== this.#asked) return;
    if (outcome.kind !== 'accepted') return this.#showRefusal(outcome);
    const before = this.#base?.value ?? {};
    const changes = changesBetween(before, outcome.object.value).filter(
      ({ path }) => path[1] !== 'managedFields',
    );
    fill(
      this.#result,
      element('p', { class: 'good' }, 'The server would accept this. Nothing has been saved.'),
      ...outcome.warnings.map((warning) => element('p', { class: 'warning' }, warning)),
      changeList(changes, 'It changes nothing.'),
    );
  }

  async #save(ownership: 'respected' | 'forced' = 'respected'): Promise<void> {
    fill(this.#result, 'Saving…');
    this.#asked += 1;
    const outcome = await saveEdit(this.#context.api, this.#edit(ownership));
    if (outcome.kind !== 'accepted') return this.#showRefusal(outcome);
    this.#begin(outcome.object, withoutManagedFields(outcome.object.text));
    const told = outcome.warnings.map((warning) => element('p', { class: 'warning' }, warning));
    fill(this.#result, element('p', { class: 'good' }, 'Saved.'), ...told);
    this.#context.announce('Saved.');
    this.#options.onSaved(outcome.object);
  }

  #begin(object: LoadedObject, text: string): void {
    this.#base = object;
    this.#text.value = text;
    this.#saved = withoutManagedFields(object.text);
    fill(this.#notice);
  }

  async #showRefusal(outcome: Exclude<EditOutcome, { kind: 'accepted' }>): Promise<void> {
    const message = element('p', { class: 'fault', role: 'alert' }, outcome.message);
    if (outcome.kind === 'changed') return this.#showChanged(message);
    if (outcome.kind === 'owned') {
      fill(this.#result, message, ...this.#ownedParts(outcome.conflicts));
      return;
    }
    const faults = outcome.kind === 'invalid' ? outcome.faults : [];
    fill(this.#result, message, faults.length > 0 && this.#faultList(faults));
  }

  #faultList(faults: Extract<EditOutcome, { kind: 'invalid' }>['faults']): HTMLElement {
    const items = faults.map(({ field, message, line }) =>
      element(
        'li',
        {},
        line !== undefined && button(`Line ${line}`, () => this.#goTo(line), { class: 'step' }),
        field !== '' && element('code', {}, ` ${field}`),
        ` ${message}`,
      ),
    );
    return element('ul', { class: 'faults' }, ...items);
  }

  #goTo(line: number): void {
    const lines = this.#text.value.split('\n');
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    this.#text.focus();
    this.#text.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  }

  #ownedParts(conflicts: Extract<EditOutcome, { kind: 'owned' }>['conflicts']): HTMLElement[] {
    return [
      element(
        'ul',
        { class: 'faults' },
        ...conflicts.map(({ field, message }) =>
          element('li', {}, element('code', {}, field), ` ${message}`),
        ),
      ),
      button('Take these fields over', () => this.#save('forced'), { class: 'danger' }),
    ];
  }

  /** After a conflict: theirs with mine, theirs alone, or mine alone. */
  #waysOn(theirs: LoadedObject, both: JsonValue | undefined): HTMLElement[] {
    const merge = (value: JsonValue) =>
      button('Make my changes to theirs', () => this.#begin(theirs, printYaml(value)), {
        class: 'primary',
      });
    return [
      ...(both === undefined ? [] : [merge(both)]),
      button('Take theirs', () => this.#begin(theirs, withoutManagedFields(theirs.text))),
      button('Keep mine for the next save', () => this.#begin(theirs, this.#text.value), {
        class: 'danger',
        title: 'What others changed and this text has not is lost by it',
      }),
    ];
  }

  /** What others did since, beside what is in the text; and the ways on from there. */
  async #showChanged(message: HTMLElement): Promise<void> {
    const base = this.#base;
    const read = readYaml(this.#text.value);
    try {
      const theirs = await loadObject(this.#context.api, this.#options.target);
      if (base === undefined || read.fault !== undefined) return fill(this.#result, message);
      const texts = [base.text, printYaml(read.value), theirs.text].map(bare);
      const [baseValue = null, mine = null, theirValue = null] = texts;
      const both = rebased({ base: baseValue, mine, theirs: theirValue });
      fill(
        this.#result,
        message,
        threeWayList(threeWay({ base: baseValue, mine, theirs: theirValue })),
        element('div', { class: 'actions' }, ...this.#waysOn(theirs, both)),
      );
    } catch (error) {
      fill(this.#result, message, element('p', { class: 'fault' }, messageOf(error)));
    }
  }
}

/** The value of a text without what every write changes. */
function bare(text: string) {
  const read = readYaml(withoutManagedFields(text));
  if (read.fault !== undefined) return null;
  const { value } = read;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const { resourceVersion: _, generation: __, ...metadata } = Object(value.metadata);
  return { ...value, metadata };
}

/** The text that a new object begins with. */
export function newObjectText({ kind, namespace }: ObjectName, apiVersion: string): string {
  const within = namespace === undefined ? '' : `  namespace: ${JSON.stringify(namespace)}\n`;
  return `apiVersion: ${apiVersion}\nkind: ${kind.kind}\nmetadata:\n  name: ""\n${within}`;
}
