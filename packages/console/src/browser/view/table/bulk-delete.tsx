import { useState } from 'preact/hooks';
import type { Kind } from '../../model/kinds.ts';
import type { TableRow } from '../../model/table.ts';
import { deleteAll } from '../../model/write/bulk.ts';
import { useApp } from '../parts/app.ts';
import { ActionDialog, Button } from '../parts/basics.tsx';
import { asPropagation, PropagationChoice } from '../parts/deletion.tsx';
import type { GridState } from './grid-state.ts';

const shownMax = 8;

/** What can be done with the rows that are selected. */
export function BulkDelete(props: {
  readonly kind: Kind;
  readonly rows: readonly TableRow[];
  readonly state: GridState;
}) {
  const { kind, rows, state } = props;
  const [isAsking, setAsking] = useState(false);
  const selected =
    state.selected.size === 0 ? [] : rows.filter(({ key }) => state.selected.has(key));
  if (selected.length === 0) return null;
  return (
    <div class="selection" role="status">
      <strong>{selected.length} selected</strong>
      <Button act={() => setAsking(true)} class="danger">
        Delete…
      </Button>
      <Button act={() => state.select([])}>Clear</Button>
      {isAsking && (
        <Ask {...{ kind, selected }} onClose={() => setAsking(false)} select={state.select} />
      )}
    </div>
  );
}

function Ask(props: {
  readonly kind: Kind;
  readonly selected: readonly TableRow[];
  readonly select: (keys: readonly string[]) => void;
  readonly onClose: () => void;
}) {
  const { kind, selected, select, onClose } = props;
  const app = useApp();
  const [propagation, setPropagation] = useState('');
  const [done, setDone] = useState(0);
  // Those that were selected when it was asked, whatever goes meanwhile.
  const [rows] = useState(selected);
  const act = async (): Promise<string | undefined> => {
    const wanted = asPropagation(propagation);
    const targets = rows.map(({ namespace, name, uid }) => ({
      target: { kind, namespace: namespace === '' ? undefined : namespace, name },
      uid,
    }));
    const how = wanted === undefined ? {} : { propagation: wanted };
    const outcomes = await deleteAll(app.api, targets, { how, onProgress: setDone });
    const refused = outcomes.filter(({ refusal }) => refusal !== undefined);
    const names = new Set(refused.map(({ target }) => `${target.namespace ?? ''}/${target.name}`));
    select(
      rows.filter(({ namespace, name }) => names.has(`${namespace}/${name}`)).map(({ key }) => key),
    );
    app.announce(`${outcomes.length - refused.length} of ${outcomes.length} deleted.`);
    const [first] = refused;
    if (first === undefined) return undefined;
    return `${refused.length} not deleted. ${first.target.name}: ${first.refusal ?? ''}`;
  };
  return (
    <ActionDialog
      title={`Delete ${rows.length} ${kind.resource}?`}
      action={`Delete ${rows.length}`}
      isDangerous
      act={act}
      onClose={onClose}
    >
      <ul class="names">
        {rows.slice(0, shownMax).map(({ key }) => (
          <li key={key}>
            <code>{key}</code>
          </li>
        ))}
        {rows.length > shownMax && <li>and {rows.length - shownMax} more</li>}
      </ul>
      <p>This cannot be undone.</p>
      <PropagationChoice value={propagation} onChange={setPropagation} />
      {done > 0 && <progress aria-label="Deleted" max={rows.length} value={done} />}
    </ActionDialog>
  );
}
