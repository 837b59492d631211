import { apiVersionOf, collectionPath, type Kind } from '../model/kinds.ts';
import { getCommand } from '../model/kubectl.ts';
import { hashOf, type TableRoute } from '../model/route.ts';
import type { Sorting } from '../model/table.ts';
import { openTable, type TableSnapshot, type TableState } from '../model/table-store.ts';
import { type Page, type PageContext, routeOfKind } from './context.ts';
import { button, element, fill, form, labelled, setAttribute } from './element.ts';
import { createGrid } from './table-grid.ts';

const pageSize = 500;
/** How often ages are counted on. */
const ageMs = 5_000;

/** The objects of a kind, listed and followed. */
export function tablePage(context: PageContext, kind: Kind, at: TableRoute): Page {
  const isAll = kind.scope === 'Namespaced' && at.namespace === '';
  const view = createTableView(context, { kind, at, isAll });
  const table = openTable({
    api: context.api,
    clock: context.clock,
    query: {
      kind,
      namespace: at.namespace === '' ? undefined : at.namespace,
      labelSelector: at.labels,
      fieldSelector: at.fields,
      pageSize,
    },
    random: context.random,
    onChange: () => context.beforeNextFrame(draw),
  });
  function draw(): void {
    view.show(table.snapshot);
  }
  view.onMore = () => table.loadMore();
  view.onRetry = () => table.restart();
  const ages = context.clock.every(ageMs, () => context.beforeNextFrame(draw));
  draw();
  return {
    title: `${kind.kind} objects`,
    root: view.root,
    resume: () => table.restart(),
    close() {
      ages.stop();
      table.close();
    },
  };
}

interface TableView {
  readonly root: HTMLElement;
  onMore: () => Promise<void>;
  onRetry: () => void;
  show(snapshot: TableSnapshot): void;
}

function createTableView(
  context: PageContext,
  of: { readonly kind: Kind; readonly at: TableRoute; readonly isAll: boolean },
): TableView {
  const { kind, at, isAll } = of;
  let sorting: Sorting | undefined;
  let last: TableSnapshot | undefined;
  const wide = element('input', { type: 'checkbox' });
  const widthOf = () => (wide.checked ? 'wide' : 'normal');
  const redraw = (): void => {
    if (last !== undefined) view.show(last);
  };
  const grid = createGrid((column) => {
    const isAgain = sorting?.by === column && sorting.direction === 'ascending';
    sorting = { by: column, direction: isAgain ? 'descending' : 'ascending' };
    redraw();
  });
  wide.addEventListener('change', redraw);
  const state = element('output', { class: 'state', 'aria-live': 'polite' });
  const foot = element('p', { class: 'foot' });
  const copy = button('Copy as kubectl', () => {
    const namespace = at.namespace === '' ? undefined : at.namespace;
    const { labels, fields } = at;
    return context.copy(getCommand({ kind, namespace, labels, fields, width: widthOf() }));
  });
  const view: TableView = {
    root: element(
      'section',
      { class: 'page' },
      headingOf(kind, { state, namespace: at.namespace }),
      element(
        'div',
        { class: 'bar' },
        filterForm(context, { kind, at }),
        labelled('Wide', wide),
        copy,
      ),
      element(
        'div',
        { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Objects' },
        grid.root,
      ),
      foot,
    ),
    onMore: async () => {},
    onRetry: () => {},
    show(snapshot) {
      last = snapshot;
      showState(state, snapshot.state);
      grid.show(snapshot, {
        kind,
        withNamespace: isAll,
        width: widthOf(),
        sorting,
        nowMs: context.clock.now(),
      });
      fill(foot, ...footOf(snapshot, view));
    },
  };
  return view;
}

function headingOf(
  kind: Kind,
  { state, namespace }: { readonly state: HTMLElement; readonly namespace: string },
): HTMLElement {
  const create = hashOf({ page: 'create', resource: routeOfKind(kind), namespace });
  return element(
    'header',
    { class: 'heading' },
    element('h1', {}, kind.kind),
    element('code', { title: collectionPath(kind) }, apiVersionOf(kind)),
    state,
    kind.verbs.includes('create') && element('a', { class: 'button', href: create }, 'Create'),
  );
}

/** Which objects: the form leads to the address of what it says. */
function filterForm(
  context: PageContext,
  { kind, at }: { readonly kind: Kind; readonly at: TableRoute },
): HTMLElement {
  const input = (value: string, placeholder: string) =>
    element('input', { value, placeholder, autocomplete: 'off', spellcheck: 'false' });
  const namespace = namespaceInput(context, at.namespace, 'all');
  const labels = input(at.labels, 'app=web,tier!=back');
  const fields = input(at.fields, 'metadata.name=web');
  const submit = (): void =>
    context.go({
      page: 'table',
      at: {
        ...routeOfKind(kind),
        namespace: namespace.input.value.trim(),
        labels: labels.value.trim(),
        fields: fields.value.trim(),
      },
    });
  namespace.input.addEventListener('change', submit);
  return form(
    { class: 'filter', role: 'search' },
    submit,
    kind.scope === 'Namespaced' && labelled('Namespace', namespace.root),
    labelled('Labels', labels),
    labelled('Fields', fields),
    element('button', { type: 'submit' }, 'Show'),
  );
}

let inputs = 0;

/** A text that suggests namespaces; not a choice, for not everybody may list them. */
export function namespaceInput(
  context: PageContext,
  value: string,
  placeholder: string,
): { readonly root: HTMLElement; readonly input: HTMLInputElement } {
  inputs += 1;
  const id = `namespaces-${inputs}`;
  const input = element('input', {
    value,
    placeholder,
    list: id,
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const suggested = element('datalist', { id });
  input.addEventListener('focus', () =>
    fill(suggested, ...context.namespaces().map((name) => element('option', { value: name }))),
  );
  return { root: element('span', {}, input, suggested), input };
}

const stateTexts: Readonly<Record<TableState['phase'], string>> = {
  listing: 'Reading…',
  live: 'Live',
  waiting: 'Not connected',
  still: 'Not live',
  refused: 'Refused',
};

function showState(target: HTMLElement, { phase, message, retryInMs }: TableState): void {
  const again = retryInMs === undefined ? '' : `, again in ${Math.ceil(retryInMs / 1000)} s`;
  const text = `${stateTexts[phase]}${message === undefined ? '' : `: ${message}`}${again}`;
  setAttribute(target, 'class', `state ${phase}`);
  // Said again only when it is something else: screen readers read every change out.
  if (target.textContent !== text) target.textContent = text;
}

function footOf(snapshot: TableSnapshot, view: TableView): (HTMLElement | string)[] {
  const { rows, more, state, warnings } = snapshot;
  const count = `${rows.length} object${rows.length === 1 ? '' : 's'}`;
  const left = more?.remaining === undefined ? '' : `, ${more.remaining} more to read`;
  const told = warnings.map((warning) => element('span', { class: 'warning' }, warning));
  if (state.phase === 'refused') return [button('Try again', () => view.onRetry()), ...told];
  if (state.phase === 'listing' && rows.length === 0) return told;
  if (more === undefined) return [count, ...told];
  return [
    `${count}${left}; sorting is among those read. `,
    button('Read more', () => view.onMore()),
    ...told,
  ];
}
