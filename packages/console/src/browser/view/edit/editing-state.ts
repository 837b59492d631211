import { isObject, type JsonValue } from '@wheelhouse/machinery/browser';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import {
  type Change,
  changesBetween,
  mergeChanges,
  type ThreeWay,
  threeWay,
} from '../../model/changes.ts';
import {
  type Edit,
  type EditFault,
  type EditOutcome,
  saveEdit,
  validateEdit,
  type WriteMode,
  withLines,
} from '../../model/editing.ts';
import { objectOf, textOf } from '../../model/failure.ts';
import type { ObjectName } from '../../model/kinds.ts';
import { type LoadedObject, loadObject } from '../../model/object.ts';
import type { KindSchema } from '../../model/schema.ts';
import { schemaFaults } from '../../model/write/assist.ts';
import { printYaml, readYaml, withoutManagedFields } from '../../model/yaml.ts';
import { type App, useApp } from '../parts/app.ts';

/** The field manager of the console's writes, unless the user names another. */
export const defaultManager = 'wheelhouse-console';

/** The properties of an editor. */
export interface EditorOptions {
  readonly target: ObjectName;
  /** The version that the text is based on; undefined for a new object. */
  readonly object: LoadedObject | undefined;
  readonly text: string;
  readonly onSaved: (object: LoadedObject) => void;
}

/** The last response of the server. */
export type Result =
  | { readonly kind: 'none' }
  | { readonly kind: 'busy'; readonly text: string }
  | { readonly kind: 'saved'; readonly warnings: readonly string[] }
  | {
      readonly kind: 'valid';
      readonly warnings: readonly string[];
      readonly changes: readonly Change[];
    }
  | { readonly kind: 'rejected'; readonly outcome: Rejection }
  | Conflict;

/** A write of a version that others have changed. */
export interface Conflict {
  readonly kind: 'changed';
  readonly message: string;
  readonly ways: readonly ThreeWay[];
  readonly theirs: LoadedObject;
  /** Their version merged with mine, if the changes do not overlap. */
  readonly both: JsonValue | undefined;
}

/** Why the server did not accept an edit; the editor shows it and keeps the user's text. */
export type Rejection = Exclude<EditOutcome, { kind: 'accepted' }>;

/** An edited text and its actions. */
export interface Editing {
  readonly text: string;
  /** How often the text has been replaced other than by typing. */
  readonly replacements: number;
  /** The edited object; its name is empty until it has been created. */
  readonly target: ObjectName;
  readonly mode: WriteMode;
  readonly manager: string;
  readonly base: LoadedObject | undefined;
  readonly result: Result;
  setText(text: string): void;
  setMode(mode: WriteMode): void;
  setManager(manager: string): void;
  validate(): Promise<void>;
  save(ownership?: 'respected' | 'forced'): Promise<void>;
  /** Continues with a text based on another version. */
  begin(object: LoadedObject, text: string): void;
  /** Merges the current text into their version after a conflict, unless the changes overlap. */
  merge(conflict: Conflict): void;
  /** Reduces the text to what an apply needs, without status and server-managed fields. */
  reduce(): void;
}

/** Returns the state of an edited text, which is written only by `save`. */
export function useEditing(options: EditorOptions): Editing {
  const app = useApp();
  const [, redraw] = useState(0);
  const session = useMemo(
    () => new EditSession(app, options, () => redraw((count) => count + 1)),
    // One session per editor, so there are no dependencies.
    [],
  );
  session.onSaved = options.onSaved;
  const { workspace } = app;
  useEffect(() => {
    workspace.hasUnsaved = () => session.hasUnsaved;
    return () => {
      workspace.hasUnsaved = () => false;
      session.isClosed = true;
    };
  }, [workspace, session]);
  return session;
}

const changeModeOf = ({ kind }: ObjectName): WriteMode =>
  kind.verbs.includes('update') ? 'update' : 'apply';

class EditSession implements Editing {
  text: string;
  replacements = 0;
  target: ObjectName;
  mode: WriteMode;
  manager = defaultManager;
  base: LoadedObject | undefined;
  result: Result = { kind: 'none' };
  onSaved: (object: LoadedObject) => void;
  /** Whether the user has left the editor; a save that completes later must not navigate. */
  isClosed = false;
  readonly #app: App;
  readonly #changed: () => void;
  #saved: string;
  /** Number of requests so far; only the outcome of the latest one is shown. */
  #requests = 0;
  #isSaving = false;

  constructor(app: App, options: EditorOptions, changed: () => void) {
    this.#app = app;
    this.target = options.target;
    this.#changed = changed;
    this.base = options.object;
    this.text = options.text;
    this.#saved = options.text;
    this.mode = options.object === undefined ? 'create' : changeModeOf(options.target);
    this.onSaved = options.onSaved;
  }

  get hasUnsaved(): boolean {
    return this.text !== this.#saved;
  }

  setText(text: string): void {
    this.text = text;
    this.#changed();
  }

  setMode(mode: WriteMode): void {
    this.mode = mode;
    this.#changed();
  }

  setManager(manager: string): void {
    this.manager = manager;
    this.#changed();
  }

  async validate(): Promise<void> {
    const request = this.#begin('Validating…');
    const outcome = await validateEdit(this.#app.api, this.#edit());
    if (request !== this.#requests) return;
    if (outcome.kind !== 'accepted') return this.#reject(outcome);
    const changes = changesBetween(this.base?.value ?? {}, outcome.object.value).filter(
      ({ path }) => path[1] !== 'managedFields',
    );
    this.#show({ kind: 'valid', warnings: outcome.warnings, changes });
  }

  async save(ownership: 'respected' | 'forced' = 'respected'): Promise<void> {
    // A second save of the same text would conflict with the first.
    if (this.#isSaving) return;
    this.#isSaving = true;
    this.#begin('Saving…');
    const { text } = this;
    const outcome = await saveEdit(this.#app.api, this.#edit(ownership));
    this.#isSaving = false;
    if (outcome.kind !== 'accepted') return this.#reject(outcome);
    const { object, warnings } = outcome;
    if (this.mode === 'create') this.#continueWith(object);
    // Text that was typed meanwhile stays, and is unsaved.
    this.begin(object, this.text === text ? withoutManagedFields(object.text) : this.text);
    this.#show({ kind: 'saved', warnings });
    this.#app.announce('Saved.');
    if (!this.isClosed) this.onSaved(object);
  }

  begin(object: LoadedObject, text: string): void {
    this.base = object;
    this.text = text;
    this.replacements += 1;
    this.#saved = withoutManagedFields(object.text);
    this.#changed();
  }

  /** Edits an object that has been created, so that the next save changes it. */
  #continueWith({ value }: LoadedObject): void {
    const metadata = objectOf(value, 'metadata');
    const namespace = textOf(metadata, 'namespace') || undefined;
    this.target = { kind: this.target.kind, namespace, name: textOf(metadata, 'name') };
    this.mode = changeModeOf(this.target);
  }

  merge({ message, theirs }: Conflict): void {
    // The text may have changed since the conflict was shown.
    const conflict = this.#conflictWith(theirs, message);
    if (conflict?.both !== undefined) {
      this.begin(theirs, printYaml(conflict.both));
      return;
    }
    if (conflict !== undefined) this.#show(conflict);
    this.#app.announce('The text cannot be merged.');
  }

  reduce(): void {
    const read = readYaml(this.text);
    if (read.fault !== undefined || !isObject(read.value)) return;
    const { status: _, ...object } = read.value;
    const metadata = objectOf(read.value, 'metadata');
    const kept = ['name', 'namespace', 'labels', 'annotations'].flatMap((name) =>
      metadata[name] === undefined ? [] : [[name, metadata[name]] as const],
    );
    this.text = printYaml({ ...object, metadata: Object.fromEntries(kept) });
    this.replacements += 1;
    this.mode = 'apply';
    this.#changed();
  }

  #begin(text: string): number {
    this.#requests += 1;
    this.#show({ kind: 'busy', text });
    return this.#requests;
  }

  #show(result: Result): void {
    this.result = result;
    this.#changed();
  }

  #edit(ownership: 'respected' | 'forced' = 'respected'): Edit {
    const resourceVersion = this.base?.resourceVersion;
    return {
      target: this.target,
      mode: this.mode,
      text: this.text,
      fieldManager: this.manager.trim() || defaultManager,
      ownership,
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
  }

  /** Shows a rejection; for a conflict, with the changes of both sides. */
  async #reject(outcome: Rejection): Promise<void> {
    if (outcome.kind === 'changed') {
      try {
        const theirs = await loadObject(this.#app.api, this.target);
        const conflict = this.#conflictWith(theirs, outcome.message);
        if (conflict !== undefined) return this.#show(conflict);
      } catch {
        // The conflict itself is shown.
      }
    }
    this.#show({ kind: 'rejected', outcome });
  }

  /** Compares the text with their version; undefined if it has no base or is malformed. */
  #conflictWith(theirs: LoadedObject, message: string): Conflict | undefined {
    const read = readYaml(this.text);
    if (this.base === undefined || read.fault !== undefined) return undefined;
    const [base = null, mine = null, after = null] = [
      this.base.text,
      printYaml(read.value),
      theirs.text,
    ].map(comparable);
    const sides = { base, mine, theirs: after };
    return { kind: 'changed', message, ways: threeWay(sides), theirs, both: mergeChanges(sides) };
  }
}

/** Parses a text, without the fields that every write changes. */
function comparable(text: string): JsonValue {
  const read = readYaml(withoutManagedFields(text));
  if (read.fault !== undefined) return null;
  const { value } = read;
  if (!isObject(value)) return value;
  const { resourceVersion: _, generation: __, ...metadata } = objectOf(value, 'metadata');
  return { ...value, metadata };
}

/** Delays after typing before the text is checked against the schema, and by the server. */
const schemaDelayMs = 300;
const serverDelayMs = 1_000;

/**
 * Validates a text during typing: against the schema first and, if that finds nothing, by a dry
 * run. An unmodified text is not validated.
 */
export function useFaults(
  editing: Editing,
  schema: KindSchema | string | undefined,
): readonly EditFault[] {
  const { api, clock } = useApp();
  const [faults, setFaults] = useState<readonly EditFault[]>([]);
  const { target, text, mode, manager, base } = editing;
  const first = useRef(text);
  // The target changes only with the mode.
  useEffect(() => {
    if (text === first.current) return setFaults([]);
    const abort = new AbortController();
    const dryRun = async (): Promise<void> => {
      const edit = { target, mode, text, fieldManager: manager.trim() || defaultManager };
      const at = base === undefined ? {} : { resourceVersion: base.resourceVersion };
      const outcome = await validateEdit(api, { ...edit, ...at }, { signal: abort.signal });
      if (!abort.signal.aborted) setFaults(outcome.kind === 'invalid' ? outcome.faults : []);
    };
    const timers = [
      clock.after(schemaDelayMs, () => setFaults(localFaults(text, schema))),
      clock.after(serverDelayMs, () => {
        if (localFaults(text, schema).length === 0) dryRun().catch(() => {});
      }),
    ];
    return () => {
      for (const timer of timers) timer.stop();
      abort.abort(new Error('the text has changed'));
    };
  }, [text, mode, schema, base]);
  return faults;
}

function localFaults(text: string, schema: KindSchema | string | undefined): EditFault[] {
  const read = readYaml(text);
  if (read.fault !== undefined) return [{ field: '', reason: 'Syntax', ...read.fault }];
  if (typeof schema !== 'object' || !isObject(read.value)) return [];
  return withLines(schemaFaults(schema, read.value), text);
}
