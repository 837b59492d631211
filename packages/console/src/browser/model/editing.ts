import { isObject, itemsOfList, type JsonObject } from '@wheelhouse/machinery/browser';
import type { Api, ApiRequest } from './api.ts';
import { type Change, changesBetween } from './changes.ts';
import { ApiFailure, type FailureCause, messageOf, objectOf, textOf } from './failure.ts';
import { apiVersionOf, collectionPath, type Kind, type ObjectName, objectPath } from './kinds.ts';
import { kindOf, type LoadedObject, loadedFrom, loadObject, yamlType } from './object.ts';
import { linesOfFields, printYaml, readYaml, withResourceVersion } from './yaml.ts';

/** How a text is written: create a new object, replace the stored one, or apply it. */
export type WriteMode = 'create' | 'update' | 'apply';

/** A text to write. */
export interface Edit {
  readonly target: ObjectName;
  readonly mode: WriteMode;
  readonly text: string;
  /** The resourceVersion that the text is based on; an update of a newer version is rejected. */
  readonly resourceVersion?: string;
  /** The field manager. */
  readonly fieldManager: string;
  /** Takes over fields of other managers; only for `apply`. */
  readonly ownership?: 'respected' | 'forced';
}

/** An error in a text, with its position if known. */
export interface EditFault extends FailureCause {
  /** Line number, starting at 1. */
  readonly line: number | undefined;
}

/** A field that another manager owns with a different value. */
interface OwnershipConflict {
  /** `.spec.replicas` */
  readonly field: string;
  /** The server's message, which names the manager and version. */
  readonly message: string;
}

/** The result of writing or validating a text. */
export type EditOutcome =
  /** The text is valid; `object` is the resulting object. */
  | {
      readonly kind: 'accepted';
      readonly object: LoadedObject;
      readonly warnings: readonly string[];
    }
  /** The text violates the schema or validation rules; nothing is written. */
  | { readonly kind: 'invalid'; readonly message: string; readonly faults: readonly EditFault[] }
  /** Another writer has changed the object since the text was loaded. */
  | { readonly kind: 'changed'; readonly message: string }
  /** The apply conflicts with other field managers. */
  | {
      readonly kind: 'owned';
      readonly message: string;
      readonly conflicts: readonly OwnershipConflict[];
    }
  /**
   * Any other failure, such as a missing permission, a deleted object, or an unreachable server.
   */
  | { readonly kind: 'rejected'; readonly code: number; readonly message: string };

/**
 * Validates a text by a dry run with strict field validation. Rejects only with the signal's
 * reason.
 */
export function validateEdit(
  api: Api,
  edit: Edit,
  options: { readonly signal?: AbortSignal } = {},
): Promise<EditOutcome> {
  return send(api, edit, { ...options, query: { dryRun: 'All', fieldValidation: 'Strict' } });
}

/** Writes a text with strict field validation. Never rejects. */
export function saveEdit(api: Api, edit: Edit): Promise<EditOutcome> {
  return send(api, edit, { query: { fieldValidation: 'Strict' } });
}

async function send(
  api: Api,
  edit: Edit,
  options: { readonly signal?: AbortSignal; readonly query: Record<string, string> },
): Promise<EditOutcome> {
  const localOutcome = checkLocally(edit);
  if (localOutcome !== undefined) return localOutcome;
  const { query, ...rest } = options;
  try {
    const { fieldManager } = edit;
    const { text, warnings } = await api.send({
      ...requestOf(edit),
      ...rest,
      query: {
        ...query,
        fieldManager,
        force: edit.mode === 'apply' && edit.ownership === 'forced' ? 'true' : undefined,
      },
      accept: yamlType,
    });
    return { kind: 'accepted', object: loadedFrom(text), warnings };
  } catch (error) {
    if (options.signal?.aborted === true) throw error;
    const outcome = outcomeOf(error, edit);
    return outcome.kind === 'changed' ? notFoundIfDeleted(api, edit, outcome) : outcome;
  }
}

function requestOf(edit: Edit): Pick<ApiRequest, 'method' | 'path' | 'body' | 'type'> {
  const { target, mode, text, resourceVersion } = edit;
  const path = objectPath(target);
  if (mode === 'create') {
    const { kind, namespace } = target;
    return { method: 'POST', path: collectionPath(kind, namespace), body: text, type: yamlType };
  }
  if (mode === 'apply') {
    return { method: 'PATCH', path, body: text, type: 'application/apply-patch+yaml' };
  }
  const body = resourceVersion === undefined ? text : withResourceVersion(text, resourceVersion);
  return { method: 'PUT', path, body, type: yamlType };
}

/** Checks a text without the server. */
function checkLocally({ text, target }: Edit): EditOutcome | undefined {
  const read = readYaml(text);
  if (read.fault !== undefined) {
    const { message, line } = read.fault;
    return invalid('the text is not valid YAML', [{ field: '', reason: 'Syntax', message, line }]);
  }
  if (!isObject(read.value)) {
    const message = 'expected an object with apiVersion, kind, metadata, …';
    return invalid(message, [{ field: '', reason: 'Syntax', message, line: 1 }]);
  }
  const wrong = identityFaults(read.value, target);
  if (wrong.length === 0) return undefined;
  return invalid('the text describes another object', withLines(wrong, text));
}

function identityFaults(value: JsonObject, { kind, namespace, name }: ObjectName): FailureCause[] {
  const metadata = objectOf(value, 'metadata');
  const members = [
    { field: 'apiVersion', actual: textOf(value, 'apiVersion'), expected: apiVersionOf(kind) },
    { field: 'kind', actual: textOf(value, 'kind'), expected: kind.kind },
    { field: 'metadata.name', actual: textOf(metadata, 'name'), expected: name },
    {
      field: 'metadata.namespace',
      // A text may omit it, since the URL contains it; cluster-scoped kinds ignore it.
      actual: namespace === undefined ? '' : textOf(metadata, 'namespace') || namespace,
      expected: namespace ?? '',
    },
  ];
  return members
    .filter(({ actual, expected }) => actual !== expected)
    .filter(({ field }) => name !== '' || field !== 'metadata.name')
    .map(({ field, expected }) => ({
      field,
      reason: 'Identity',
      message: `must be ${JSON.stringify(expected)}`,
    }));
}

function outcomeOf(error: unknown, edit: Edit): EditOutcome {
  if (!(error instanceof ApiFailure)) {
    return { kind: 'rejected', code: 0, message: messageOf(error) };
  }
  const { code, message, causes } = error;
  if (code === 409 && edit.mode === 'apply') {
    const conflicts = causes.filter(({ reason }) => reason === 'FieldManagerConflict');
    if (conflicts.length > 0) return { kind: 'owned', message, conflicts };
  }
  if (code === 409 && edit.mode === 'update') return { kind: 'changed', message };
  if (code === 422) return invalid(message, withLines(causes, edit.text));
  if (code === 400) return invalid(message, withLines(strictFaults(message), edit.text));
  return { kind: 'rejected', code, message };
}

/** The server reports a deleted object as a conflict. */
async function notFoundIfDeleted(
  api: Api,
  { target }: Edit,
  outcome: EditOutcome,
): Promise<EditOutcome> {
  try {
    await loadObject(api, target);
  } catch (error) {
    if (error instanceof ApiFailure && error.code === 404) {
      return { kind: 'rejected', code: 404, message: error.message };
    }
  }
  return outcome;
}

function invalid(message: string, faults: readonly EditFault[]): EditOutcome {
  return { kind: 'invalid', message, faults };
}

/** Adds the line of each cause that names a field. */
export function withLines(causes: readonly FailureCause[], text: string): EditFault[] {
  const lineOf = linesOfFields(text);
  return causes.map((cause) => ({
    ...cause,
    line: cause.field === '' ? undefined : lineOf(cause.field),
  }));
}

/**
 * Splits a strict decoding error such as `strict decoding error: unknown field "a.b", duplicate
 * field "c"`.
 */
function strictFaults(message: string): FailureCause[] {
  const complaints = message.matchAll(/(unknown|duplicate) field "([^"]*)"/g);
  return [...complaints].map(([whole, , field = '']) => ({
    field,
    reason: 'Strict',
    message: whole,
  }));
}

/** One object in a manifest file. */
interface Manifest {
  /** `web.yaml`, or `web.yaml, document 2` */
  readonly place: string;
  readonly text: string;
  /** `Deployment team/web`, as far as the text contains it. */
  readonly title: string;
  /** Undefined if the object cannot be applied; `fault` has the reason. */
  readonly target: ObjectName | undefined;
  readonly fault: string;
}

/** The result of applying a manifest, or of a dry run. */
export interface Applied {
  readonly manifest: Manifest;
  readonly effect: 'created' | 'changed' | 'unchanged' | 'rejected';
  readonly changes: readonly Change[];
  readonly message: string;
  readonly warnings: readonly string[];
  /** The manifest conflicts with other field managers and can be forced. */
  readonly isOwned: boolean;
}

/** Kinds that other kinds depend on are applied first. */
const firstKinds = ['Namespace', 'CustomResourceDefinition'];

/** A file with manifests. */
export interface ManifestFile {
  readonly name: string;
  readonly text: string;
  /** Why the file could not be read. */
  readonly fault?: string;
}

/**
 * Parses the objects of a file: its documents, and the items of lists. A file without any yields
 * one manifest with the reason.
 */
export function manifestsIn(
  file: ManifestFile,
  of: { readonly kinds: readonly Kind[]; readonly namespace: string },
): Manifest[] {
  // Like kubectl, refuses what follows a separator instead of ignoring it.
  const [, content] = /^---[ \t]*([^\s#].*)$/m.exec(file.text) ?? [];
  const documents = content === undefined ? documentsIn(file.text) : [];
  const manifests = documents.flatMap((text, index): Manifest[] => {
    const place = documents.length === 1 ? file.name : `${file.name}, document ${index + 1}`;
    const read = readYaml(text);
    if (read.fault !== undefined) {
      const fault = `line ${read.fault.line}: ${read.fault.message}`;
      return [{ place, text, title: place, target: undefined, fault }];
    }
    const { value } = read;
    if (value === null) return [];
    if (!isObject(value)) {
      return [{ place, text, title: place, target: undefined, fault: 'not an object' }];
    }
    const items = itemsOfList(value);
    if (items === undefined) return [manifestOf({ place, text, value }, of)];
    return items
      .filter(isObject)
      .map((item, at) =>
        manifestOf({ place: `${place}, item ${at + 1}`, text: printYaml(item), value: item }, of),
      );
  });
  if (manifests.length === 0) {
    const invalid = content && `invalid Yaml document separator: ${content}`;
    const { name, fault = invalid ?? 'the file contains no objects' } = file;
    return [{ place: name, text: '', title: name, target: undefined, fault }];
  }
  const rank = ({ target }: Manifest): number => {
    const at = firstKinds.indexOf(target?.kind.kind ?? '');
    return at < 0 ? firstKinds.length : at;
  };
  return manifests.sort((left, right) => rank(left) - rank(right));
}

/** Splits a YAML stream into its nonempty documents. */
function documentsIn(text: string): string[] {
  return text
    .split(/^---(?:[ \t].*)?$/m)
    .filter((part) => part.split('\n').some((line) => /^\s*[^#\s]/.test(line)));
}

function manifestOf(
  of: { readonly place: string; readonly text: string; readonly value: JsonObject },
  { kinds, namespace }: { readonly kinds: readonly Kind[]; readonly namespace: string },
): Manifest {
  const { place, text, value } = of;
  const metadata = objectOf(value, 'metadata');
  const name = textOf(metadata, 'name');
  const kind = kindOf(kinds, value);
  const named = textOf(value, 'kind') || 'object';
  if (kind === undefined || name === '') {
    const fault =
      kind === undefined
        ? `the server does not serve ${named} of ${textOf(value, 'apiVersion') || 'no version'}`
        : 'metadata.name is missing';
    return { place, text, title: `${named} ${name}`.trim(), target: undefined, fault };
  }
  const within =
    kind.scope === 'Namespaced' ? textOf(metadata, 'namespace') || namespace : undefined;
  const title = `${kind.kind} ${within === undefined ? '' : `${within}/`}${name}`;
  return { place, text, title, target: { kind, namespace: within, name }, fault: '' };
}

/**
 * Applies manifests, or dry-runs them. Works sequentially, since later ones may depend on earlier
 * ones. Never rejects.
 */
export async function applyManifests(
  api: Api,
  manifests: readonly Manifest[],
  options: {
    readonly dryRun: 'only' | 'no';
    readonly ownership: 'respected' | 'forced';
    readonly fieldManager: string;
    readonly onProgress?: (applied: readonly Applied[]) => void;
  },
): Promise<Applied[]> {
  const done: Applied[] = [];
  for (const manifest of manifests) {
    done.push(await applyOne(api, manifest, options));
    options.onProgress?.(done);
  }
  return done;
}

async function applyOne(
  api: Api,
  manifest: Manifest,
  options: Parameters<typeof applyManifests>[2],
): Promise<Applied> {
  const { target, text, fault } = manifest;
  const rejected = { manifest, effect: 'rejected', changes: [], warnings: [] } as const;
  if (target === undefined) return { ...rejected, message: fault, isOwned: false };
  const { fieldManager, ownership } = options;
  const edit = { target, mode: 'apply', text, fieldManager, ownership } as const;
  let before: JsonObject | undefined;
  try {
    before = (await loadObject(api, target)).value;
  } catch (error) {
    const isNew = error instanceof ApiFailure && error.code === 404;
    if (!isNew) return { ...rejected, message: messageOf(error), isOwned: false };
  }
  const outcome = await (options.dryRun === 'only' ? validateEdit(api, edit) : saveEdit(api, edit));
  if (outcome.kind !== 'accepted') {
    return { ...rejected, message: refusalText(outcome), isOwned: outcome.kind === 'owned' };
  }
  const { object, warnings } = outcome;
  const changes = changesBetween(before ?? { metadata: {} }, object.value).filter(
    ({ path: [first, second] }) =>
      first !== 'metadata' || !['managedFields', 'resourceVersion'].includes(String(second)),
  );
  const effect = before === undefined ? 'created' : changes.length === 0 ? 'unchanged' : 'changed';
  return { manifest, effect, changes, message: '', warnings, isOwned: false };
}

function refusalText(outcome: Exclude<EditOutcome, { kind: 'accepted' }>): string {
  if (outcome.kind !== 'invalid' || outcome.faults.length === 0) return outcome.message;
  const faults = outcome.faults.map(({ field, message, line }) => {
    const at = line === undefined ? '' : `line ${line}: `;
    return `${at}${field === '' ? '' : `${field}: `}${message}`;
  });
  return [outcome.message, ...faults].join('\n');
}
