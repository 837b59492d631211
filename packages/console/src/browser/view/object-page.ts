import { isObject } from '@wheelhouse/machinery/browser';
import { isScalable } from '../model/actions.ts';
import { messageOf, objectOf, textOf } from '../model/failure.ts';
import { type Kind, type ObjectName, resourceName } from '../model/kinds.ts';
import { objectCommand } from '../model/kubectl.ts';
import { type LoadedObject, loadObject, ownersOf } from '../model/object.ts';
import { hashOf, type ObjectTab, objectTabs } from '../model/route.ts';
import { openTable, type TableStore } from '../model/table-store.ts';
import { withoutManagedFields } from '../model/yaml.ts';
import { type Page, type PageContext, routeOfKind } from './context.ts';
import { deleteDialog, scaleDialog } from './dialogs.ts';
import { createEditor, type Editor } from './editor.ts';
import { button, element, fill, setAttribute } from './element.ts';
import { openEvents } from './events-view.ts';
import { fieldsView, jsonView, yamlView } from './object-views.ts';

const tabLabels: Readonly<Record<ObjectTab, string>> = {
  yaml: 'YAML',
  json: 'JSON',
  fields: 'Who owns what',
  events: 'Events',
  edit: 'Edit',
};

/** One object, followed while it is shown. */
export function objectPage(
  context: PageContext,
  options: { readonly target: ObjectName; readonly tab: ObjectTab },
): Page {
  const page = new ObjectPage(context, options);
  page.begin();
  return page;
}

class ObjectPage implements Page {
  readonly title: string;
  readonly root: HTMLElement;
  readonly #context: PageContext;
  readonly #target: ObjectName;
  readonly #tab: ObjectTab;
  readonly #notice = element('p', { class: 'notice', role: 'status' });
  readonly #facts = element('div', { class: 'facts' });
  readonly #body = element('div', { class: 'body' });
  #object: LoadedObject | undefined;
  #editor: Editor | undefined;
  #row: TableStore | undefined;
  #ends: (() => void)[] = [];
  #isClosed = false;

  constructor(
    context: PageContext,
    options: { readonly target: ObjectName; readonly tab: ObjectTab },
  ) {
    this.#context = context;
    this.#target = options.target;
    this.#tab = options.tab;
    this.title = `${options.target.kind.kind} ${options.target.name}`;
    this.root = element(
      'section',
      { class: 'page' },
      this.#heading(),
      this.#notice,
      this.#facts,
      this.#tabs(),
      this.#body,
    );
  }

  /** Reads the object, and reads it again whenever its row changes. */
  begin(): void {
    const { kind, namespace, name } = this.#target;
    if (!kind.verbs.includes('list')) {
      void this.#load();
      return;
    }
    let isFirst = true;
    const row = openTable({
      api: this.#context.api,
      clock: this.#context.clock,
      query: {
        kind,
        namespace,
        labelSelector: '',
        fieldSelector: `metadata.name=${escaped(name)}`,
        pageSize: 1,
      },
      random: this.#context.random,
      onChange: () => {
        const { rows, state } = row.snapshot;
        if (state.phase === 'listing') return;
        const version = rows[0]?.resourceVersion;
        if (version === undefined && this.#object !== undefined) this.#showGone();
        else if (isFirst || version !== this.#object?.resourceVersion) void this.#load();
        isFirst = false;
      },
    });
    this.#row = row;
    this.#ends.push(() => row.close());
  }

  resume(): void {
    this.#row?.restart();
  }

  hasUnsaved(): boolean {
    return this.#editor?.hasUnsaved() === true;
  }

  close(): void {
    this.#isClosed = true;
    for (const end of this.#ends) end();
  }

  #heading(): HTMLElement {
    const { kind, namespace, name } = this.#target;
    const at = { ...routeOfKind(kind), namespace: namespace ?? '', labels: '', fields: '' };
    const copy = button('Copy as kubectl', () =>
      this.#context.copy(objectCommand(this.#target, this.#tab === 'edit' ? 'edit' : 'get')),
    );
    return element(
      'header',
      { class: 'heading' },
      element('a', { href: hashOf({ page: 'table', at }) }, resourceName(kind)),
      element('h1', {}, name),
      namespace !== undefined && element('code', { title: 'Namespace' }, namespace),
      copy,
      isScalable(this.#target) && button('Scale', () => scaleDialog(this.#context, this.#target)),
      kind.verbs.includes('delete') && button('Delete', () => this.#delete(), { class: 'danger' }),
    );
  }

  #tabs(): HTMLElement {
    const { kind, namespace, name } = this.#target;
    const canEdit = kind.verbs.includes('update') || kind.verbs.includes('patch');
    const links = objectTabs
      .filter((tab) => tab !== 'edit' || canEdit)
      .map((tab) => {
        const resource = routeOfKind(kind);
        const route = { page: 'object', resource, namespace: namespace ?? '', name, tab } as const;
        const current = tab === this.#tab ? 'page' : undefined;
        return element('a', { href: hashOf(route), 'aria-current': current }, tabLabels[tab]);
      });
    return element('nav', { class: 'tabs', 'aria-label': 'Views of the object' }, ...links);
  }

  #delete(): void {
    const object = this.#object;
    const uid = textOf(objectOf(object?.value ?? {}, 'metadata'), 'uid');
    const seen =
      object === undefined ? undefined : { uid, resourceVersion: object.resourceVersion };
    deleteDialog(this.#context, { target: this.#target, seen });
  }

  #showGone(): void {
    fill(this.#notice, 'The object has been deleted. What is shown is its last state.');
  }

  async #load(): Promise<void> {
    try {
      const object = await loadObject(this.#context.api, this.#target);
      if (this.#isClosed) return;
      const isFirst = this.#object === undefined;
      this.#object = object;
      this.#show(object, isFirst);
    } catch (error) {
      if (this.#isClosed) return;
      fill(this.#notice, messageOf(error));
      setAttribute(this.#notice, 'class', 'notice fault');
    }
  }

  #show(object: LoadedObject, isFirst: boolean): void {
    setAttribute(this.#notice, 'class', 'notice');
    const metadata = objectOf(object.value, 'metadata');
    const isGoing = textOf(metadata, 'deletionTimestamp') !== '';
    fill(this.#notice, isGoing && 'The object is being deleted.');
    fill(this.#facts, ...factsOf(object, this.#context.discovered().kinds));
    if (this.#tab === 'yaml') fill(this.#body, yamlView(this.#context, object));
    else if (this.#tab === 'json') fill(this.#body, jsonView(this.#context, object));
    else if (this.#tab === 'fields') fill(this.#body, fieldsView(object));
    else if (this.#tab === 'events' && isFirst) this.#showEvents(textOf(metadata, 'uid'));
    else if (this.#tab === 'edit' && isFirst) this.#showEditor(object);
    else this.#editor?.noteChange(object.resourceVersion);
  }

  #showEvents(uid: string): void {
    const events = openEvents(this.#context, { target: this.#target, uid });
    this.#ends.push(events.close);
    fill(this.#body, events.root);
  }

  #showEditor(object: LoadedObject): void {
    this.#editor = createEditor(this.#context, {
      target: this.#target,
      object,
      text: withoutManagedFields(object.text),
      onSaved: (saved) => {
        this.#object = saved;
      },
    });
    fill(this.#body, this.#editor.root);
  }
}

/** Owners, labels and finalizers: what says how the object hangs together with others. */
function factsOf({ value }: LoadedObject, kinds: readonly Kind[]): HTMLElement[] {
  const metadata = objectOf(value, 'metadata');
  const facts: HTMLElement[] = [];
  const owners = ownersOf(value, kinds).map(({ text, name, isController }) => {
    const label = `${text}${isController ? ' (controller)' : ''}`;
    if (name === undefined) return element('span', {}, label);
    const resource = routeOfKind(name.kind);
    const at = { namespace: name.namespace ?? '', name: name.name, tab: 'yaml' } as const;
    return element('a', { href: hashOf({ page: 'object', resource, ...at }) }, label);
  });
  if (owners.length > 0) facts.push(element('p', {}, 'Owned by ', ...owners));
  const { labels, finalizers } = metadata;
  if (isObject(labels)) {
    const tags = Object.entries(labels).map(([name, text]) =>
      element('code', { class: 'tag' }, `${name}=${String(text)}`),
    );
    facts.push(element('p', {}, ...tags));
  }
  if (Array.isArray(finalizers) && finalizers.length > 0) {
    facts.push(element('p', {}, `Waits for finalizers: ${finalizers.map(String).join(', ')}`));
  }
  return facts;
}

/** A value of a field selector. */
function escaped(text: string): string {
  return text.replace(/[\\,=]/g, '\\$&');
}
