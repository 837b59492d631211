/** Fields of an object by name; every write adds a unique marker as `mark`. */
export type Data = Readonly<Record<string, string>>;

/** An object as a server returned it. */
export interface Shown {
  readonly version: number;
  readonly uid: string;
  readonly data: Data;
}

/** A client's command for one key. `expect` is the only version that it may replace. */
export type Command =
  | { readonly type: 'read' }
  | { readonly type: 'create'; readonly data: Data }
  | { readonly type: 'replace'; readonly data: Data; readonly expect?: number }
  /** Keeps the fields that it does not name. */
  | { readonly type: 'patch'; readonly data: Data; readonly expect?: number }
  /** Like a patch, but creates a missing object. */
  | { readonly type: 'apply'; readonly data: Data }
  | { readonly type: 'delete'; readonly expect?: number };

export type Outcome =
  /** Executed; a deletion shows only the uid of the removed object. */
  | { readonly type: 'done'; readonly shown: Shown }
  | { readonly type: 'removed'; readonly uid: string | undefined }
  | { readonly type: 'absent' }
  | { readonly type: 'exists' }
  | { readonly type: 'conflict' }
  /** Rejected for a reason unrelated to the object, such as overload; not executed. */
  | { readonly type: 'refused' }
  /**
   * Without an answer, or with one that leaves open whether the command was or will be executed.
   */
  | { readonly type: 'unknown' };

/** One command and its outcome. Ticks number the actions of a history's clients in order. */
export interface Operation {
  readonly client: string;
  readonly key: string;
  readonly command: Command;
  readonly invoked: number;
  readonly completed: number;
  readonly outcome: Outcome;
}

/** The field that identifies a write. */
export const markField = 'mark';

/** The marker of a command that writes data. */
export function markOf(command: Command): string | undefined {
  return 'data' in command ? command.data[markField] : undefined;
}

/** A key's data after a writing command; undefined if the command does not apply. */
export function dataAfter(command: Command, before: Data | undefined): Data | undefined {
  switch (command.type) {
    case 'read':
    case 'delete':
      return undefined;
    case 'create':
      return before === undefined ? command.data : undefined;
    case 'replace':
      return before === undefined ? undefined : command.data;
    case 'patch':
      return before === undefined ? undefined : { ...before, ...command.data };
    case 'apply':
      return { ...before, ...command.data };
  }
}

/** Data as text, independent of the order of fields. */
export function dataText(data: Data | undefined): string {
  if (data === undefined) return '-';
  return JSON.stringify(Object.entries(data).sort(([left], [right]) => (left < right ? -1 : 1)));
}

export function describe(operation: Operation): string {
  const { client, key, command, outcome, invoked, completed } = operation;
  const { type, ...details } = command;
  const end = outcome.type === 'unknown' ? '?' : completed;
  const [asked, answered] = [JSON.stringify(details), JSON.stringify(outcome)];
  return `[${invoked}, ${end}] ${client}: ${type} ${key} ${asked} -> ${answered}`;
}

/** A history violates a guarantee. */
export class Violation extends Error {}
