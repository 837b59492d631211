import type { ResponseBody } from '../../support/harness.ts';
import type { Reply } from './connection.ts';
import type { Command, Data, Operation, Outcome, Shown } from './operation.ts';
import type { Segment, Snapshot } from './watch-log.ts';

/** A read that a process may answer from its cache (`resourceVersion=0`). */
export interface CachedRead {
  readonly by: string;
  /** The process that answered. */
  readonly process: string;
  readonly key: string;
  readonly invoked: number;
  readonly completed: number;
  readonly shown: Shown | undefined;
}

/** A list, with the time of its request. */
export interface ListRead extends Snapshot {
  readonly process: string;
  /** The type of the request: the newest state, whole or in pages, or a state of some version. */
  readonly type: 'consistent' | 'paged' | 'cached' | 'notOlder' | 'exact';
  /** The requested version; an exact list has this version. */
  readonly least?: number;
  readonly invoked: number;
  readonly completed: number;
}

/** Records the actions and observations of one history's clients. */
export class Recorder {
  readonly operations: Operation[] = [];
  readonly cachedReads: CachedRead[] = [];
  readonly lists: ListRead[] = [];
  readonly snapshots: Snapshot[] = [];
  readonly segments: Segment[] = [];
  /** Counts of statuses that are no outcome of a command. */
  readonly oddStatuses = new Map<number, number>();
  /** Number of acknowledged writes. */
  writes = 0;
  #tick = 0;

  add(operation: Operation): void {
    this.operations.push(operation);
    const { command, outcome } = operation;
    if (command.type !== 'read' && outcome.type === 'done') this.writes += 1;
  }

  /** The next tick; lower numbers are earlier. */
  tick(): number {
    this.#tick += 1;
    return this.#tick;
  }
}

/** A version of the API as a number, exact up to 2^53. */
export function versionOf(text: unknown): number {
  const version = Number(text);
  if (!Number.isSafeInteger(version) || version < 0) throw new Error(`no version: ${text}`);
  return version;
}

/** The parts of an object that the checks use. */
export function shownOf({ metadata, data }: ResponseBody): Shown & { readonly key: string } {
  return {
    key: metadata.name,
    version: versionOf(metadata.resourceVersion),
    uid: metadata.uid,
    data: (data ?? {}) as Data,
  };
}

/** The outcome of a command according to a reply; undefined if the command was not sent. */
export function outcomeOf(command: Command, reply: Reply): Outcome | undefined {
  if (reply.type === 'unsent') return undefined;
  if (reply.type === 'lost') return { type: 'unknown' };
  const { status, body } = reply;
  if (status === 200 || status === 201) {
    if (command.type === 'delete') {
      return { type: 'removed', uid: body.details?.uid ?? body.metadata?.uid };
    }
    const { key: _, ...shown } = shownOf(body);
    return { type: 'done', shown };
  }
  // Otherwise the server does not know the kind, which says nothing about the object.
  if (status === 404) return { type: body.details?.name ? 'absent' : 'refused' };
  if (status === 409) return conflictOf(command, body);
  // A server that does not know whether its store accepted a write answers with one of these.
  if (status >= 500) return { type: 'unknown' };
  return { type: 'refused' };
}

function conflictOf(command: Command, body: { reason: string }): Outcome {
  if (body.reason === 'AlreadyExists') return { type: 'exists' };
  if ('expect' in command && command.expect !== undefined) return { type: 'conflict' };
  return { type: 'refused' };
}
