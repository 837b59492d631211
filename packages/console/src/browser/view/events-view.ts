import type { Kind, ObjectName } from '../model/kinds.ts';
import { openTable } from '../model/table-store.ts';
import type { PageContext } from './context.ts';
import { element, fill } from './element.ts';
import { createGrid } from './table-grid.ts';

const pageSize = 200;

/** What was reported about an object, followed until it is closed. */
export function openEvents(
  context: PageContext,
  of: { readonly target: ObjectName; readonly uid: string },
): { readonly root: HTMLElement; readonly close: () => void } {
  const kind = context
    .discovered()
    .kinds.find(({ group, resource }) => group === '' && resource === 'events');
  if (kind === undefined) {
    return { root: element('p', {}, 'The server keeps no events.'), close: () => {} };
  }
  return follow(context, kind, of);
}

function follow(
  context: PageContext,
  kind: Kind,
  of: { readonly target: ObjectName; readonly uid: string },
): { readonly root: HTMLElement; readonly close: () => void } {
  const note = element('p', { role: 'status' });
  const grid = createGrid(() => {});
  const table = openTable({
    api: context.api,
    clock: context.clock,
    query: {
      kind,
      // Events about what has no namespace stand in any, mostly in the default one.
      namespace: of.target.namespace,
      labelSelector: '',
      fieldSelector: `involvedObject.uid=${of.uid}`,
      pageSize,
    },
    random: context.random,
    onChange: () => context.beforeNextFrame(draw),
  });
  function draw(): void {
    const { state, rows } = table.snapshot;
    const none = rows.length === 0 && state.phase === 'live' ? 'Nothing has been reported.' : '';
    fill(note, state.message ?? none);
    grid.show(table.snapshot, {
      kind,
      withNamespace: false,
      width: 'normal',
      sorting: undefined,
      nowMs: context.clock.now(),
    });
  }
  return { root: element('div', { class: 'scroll' }, note, grid.root), close: () => table.close() };
}
