import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { messageOf, objectOf, textOf } from '../../model/failure.ts';
import { ObjectHistory } from '../../model/insight/history.ts';
import type { ObjectName } from '../../model/kinds.ts';
import { type LoadedObject, loadObject } from '../../model/object.ts';
import type { TableState } from '../../model/table-store.ts';
import { useApp, useRedraw, useTables } from '../parts/app.ts';

/** Something to say above an object. */
export interface Notice {
  readonly tone: 'fault' | 'plain';
  readonly text: string;
}

/** One object as it is now, and what has become of it. */
export interface FollowedObject {
  /** Undefined until it has been read. */
  readonly object: LoadedObject | undefined;
  readonly notice: Notice | undefined;
  /** Whether changes of the object are followed; undefined for kinds that cannot be listed. */
  readonly state: TableState | undefined;
  readonly history: ObjectHistory;
  /** Puts a version in its place that a write has given. */
  replace(object: LoadedObject): void;
}

const goneText = 'The object has been deleted. What is shown is its last state.';

/** Reads an object, and reads it again whenever the server says that it has changed. */
export function useObject(target: ObjectName): FollowedObject {
  const app = useApp();
  const { api, clock } = app;
  const redraw = useRedraw();
  const history = useMemo(() => new ObjectHistory(), []);
  const [object, setObject] = useState<LoadedObject>();
  const [notice, setNotice] = useState<Notice>();
  const { kind, namespace, name } = target;
  const isListable = kind.verbs.includes('list');
  const now = (): string => new Date(clock.now()).toISOString();
  const store = useTables(
    isListable
      ? {
          kind,
          namespaces: namespace === undefined ? [] : [namespace],
          labelSelector: '',
          fieldSelector: `metadata.name=${escaped(name)}`,
          pageSize: 1,
          objects: 'whole',
        }
      : undefined,
    (change, row) => {
      history.record(row.object, now(), change === 'DELETED' ? 'deleted' : 'present');
    },
  );
  const snapshot = store?.snapshot;
  const [row] = snapshot?.rows ?? [];
  const isRead = !isListable || (snapshot !== undefined && snapshot.state.phase !== 'listing');
  const wasRead = object !== undefined;
  const isGone = isRead && isListable && row === undefined && wasRead;
  const latest = useRef<AbortController | undefined>(undefined);
  // Not for every change: read for each version of the row.
  useEffect(() => {
    if (!isRead || isGone) return;
    if (row !== undefined) history.record(row.object, now());
    if (row !== undefined && object?.resourceVersion === row.resourceVersion) return;
    latest.current?.abort(new Error('there is a newer version'));
    const abort = new AbortController();
    latest.current = abort;
    loadObject(api, target, { signal: abort.signal }).then(
      (loaded) => {
        setObject(loaded);
        setNotice(noticeOf(loaded));
        redraw();
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setNotice({ tone: 'fault', text: messageOf(error) });
      },
    );
  }, [isRead, row?.resourceVersion, isGone]);
  useEffect(() => () => latest.current?.abort(new Error('closed')), []);
  return {
    object,
    notice: isGone ? { tone: 'plain', text: goneText } : notice,
    state: stateOf(snapshot?.state),
    history,
    replace: setObject,
  };
}

/** Who may read an object but not list its kind sees it as it was when it was read. */
function stateOf(state: TableState | undefined): TableState | undefined {
  return state?.phase === 'refused' ? { ...state, phase: 'still' } : state;
}

function noticeOf({ value }: LoadedObject): Notice | undefined {
  const isGoing = textOf(objectOf(value, 'metadata'), 'deletionTimestamp') !== '';
  return isGoing ? { tone: 'plain', text: 'The object is being deleted.' } : undefined;
}

/** A value of a field selector. */
function escaped(text: string): string {
  return text.replace(/[\\,=]/g, '\\$&');
}
