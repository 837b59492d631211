import type { Command, Data, Operation, Outcome, Shown } from './operation.ts';
import type { ChangeEvent } from './watch-log.ts';

/** An operation of a test's history on the key `k`; without a completion its outcome is unknown. */
export function operation(
  [invoked, completed]: readonly [number, number?],
  command: Command,
  outcome: Outcome = { type: 'unknown' },
): Operation {
  const client = `client-${invoked}`;
  return { client, key: 'k', command, outcome, invoked, completed: completed ?? invoked };
}

export function shown(version: number, data: Data, uid = 'u1'): Shown {
  return { version, uid, data };
}

export function done(version: number, data: Data, uid = 'u1'): Outcome {
  return { type: 'done', shown: shown(version, data, uid) };
}

export function change(type: ChangeEvent['type'], version: number, data: Data): ChangeEvent {
  return { type, key: 'k', ...shown(version, data) };
}
