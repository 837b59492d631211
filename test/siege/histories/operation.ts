/** Fields of an object by name; every write adds a marker of its own as `mark`. */
export type Data = Readonly<Record<string, string>>;

/** An object as the server showed it. */
export interface Shown {
  readonly version: number;
  readonly uid: string;
  readonly data: Data;
}

/** What a client asks of one key. `expect` is the only version that the command may replace. */
export type Command =
  | { readonly type: 'read' }
  | { readonly type: 'create'; readonly data: Data }
  | { readonly type: 'replace'; readonly data: Data; readonly expect?: number }
  /** Keeps the fields that it does not name. */
  | { readonly type: 'patch'; readonly data: Data; readonly expect?: number }
  /** Like a patch, and creates the object where there is none. */
  | { readonly type: 'apply'; readonly data: Data }
  | { readonly type: 'delete'; readonly expect?: number };

export type Outcome =
  /** Carried out; a deletion shows only the uid of what it removed. */
  | { readonly type: 'done'; readonly shown: Shown }
  | { readonly type: 'removed'; readonly uid: string | undefined }
  | { readonly type: 'absent' }
  | { readonly type: 'exists' }
  | { readonly type: 'conflict' }
  /** Refused for a reason that says nothing about the object, such as overload: not carried out. */
  | { readonly type: 'refused' }
  /** No answer, or one that leaves open whether the command was or will be carried out. */
  | { readonly type: 'unknown' };

/** One command and its outcome. Ticks number what the clients of a history do, in its order. */
export interface Operation {
  readonly client: string;
  readonly key: string;
  readonly command: Command;
  readonly invoked: number;
  readonly completed: number;
  readonly outcome: Outcome;
}

/** The field by which a write is recognized. */
export const markField = 'mark';

/** The marker of a command that writes data. */
export function markOf(command: Command): string | undefined {
  return 'data' in command ? command.data[markField] : undefined;
}

/** What a key's data is after a command that writes; undefined where the command does not apply. */
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

/** Data as text, the same for the same fields in any order. */
export function dataText(data: Data | undefined): string {
  if (data === undefined) return '-';
  return JSON.stringify(Object.entries(data).sort(([one], [other]) => (one < other ? -1 : 1)));
}

export function describe(operation: Operation): string {
  const { client, key, command, outcome, invoked, completed } = operation;
  const { type, ...details } = command;
  const end = outcome.type === 'unknown' ? '?' : completed;
  const [asked, answered] = [JSON.stringify(details), JSON.stringify(outcome)];
  return `[${invoked}, ${end}] ${client}: ${type} ${key} ${asked} -> ${answered}`;
}

/** A guarantee that a history shows not to hold. */
export class Violation extends Error {}
