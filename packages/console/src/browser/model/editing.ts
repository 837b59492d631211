import { isObject, type JsonObject } from '@wheelhouse/machinery/browser';
import type { Api, ApiRequest } from './api.ts';
import { ApiFailure, type FailureCause, messageOf, objectOf, textOf } from './failure.ts';
import { apiVersionOf, collectionPath, type ObjectName, objectPath } from './kinds.ts';
import { type LoadedObject, loadedFrom, loadObject, yamlType } from './object.ts';
import { lineOfField, readYaml, withMetadata } from './yaml.ts';

/** How a text becomes an object: as a new one, in the place of what is there, or merged into it. */
export type WriteMode = 'create' | 'update' | 'apply';

/** A text to be written. */
export interface Edit {
  readonly target: ObjectName;
  readonly mode: WriteMode;
  readonly text: string;
  /** The version the text began from: an update is refused when there is another one by now. */
  readonly resourceVersion?: string;
  /** Whose fields they will be. */
  readonly fieldManager: string;
  /** Takes fields over that others own; for `apply` alone. */
  readonly ownership?: 'respected' | 'forced';
}

/** A reason against a text, with its place where there is one. */
export interface EditFault extends FailureCause {
  /** Counted from 1. */
  readonly line: number | undefined;
}

/** A field that another manager owns with another value. */
export interface OwnershipConflict {
  /** `.spec.replicas` */
  readonly field: string;
  /** What the server says: by whom, and in which version. */
  readonly message: string;
}

/** What the server says of a text. */
export type EditOutcome =
  /** It is fine: this is the object that it makes, or has made. */
  | {
      readonly kind: 'accepted';
      readonly object: LoadedObject;
      readonly warnings: readonly string[];
    }
  /** It is not what the schema or the rules of the kind want; nothing is changed. */
  | { readonly kind: 'invalid'; readonly message: string; readonly faults: readonly EditFault[] }
  /** Somebody else has written the object since the text was begun. */
  | { readonly kind: 'changed'; readonly message: string }
  /** It would take fields away from their owners. */
  | {
      readonly kind: 'owned';
      readonly message: string;
      readonly conflicts: readonly OwnershipConflict[];
    }
  /** Anything else: not allowed, no longer there, quota, an unreachable server. */
  | { readonly kind: 'refused'; readonly code: number; readonly message: string };

/**
 * Asks the server what a text would do, by all its rules, writing nothing: a dry run with strict
 * field validation. Never rejects, but with the signal's reason.
 */
export function validateEdit(
  api: Api,
  edit: Edit,
  options: { readonly signal?: AbortSignal } = {},
): Promise<EditOutcome> {
  return send(api, edit, { ...options, query: { dryRun: 'All', fieldValidation: 'Strict' } });
}

/** Writes a text, as strictly. Never rejects. */
export function saveEdit(api: Api, edit: Edit): Promise<EditOutcome> {
  return send(api, edit, { query: { fieldValidation: 'Strict' } });
}

async function send(
  api: Api,
  edit: Edit,
  options: { readonly signal?: AbortSignal; readonly query: Record<string, string> },
): Promise<EditOutcome> {
  const unfit = faultsOf(edit);
  if (unfit !== undefined) return unfit;
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
    return outcome.kind === 'changed' ? goneOr(api, edit, outcome) : outcome;
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
  const body =
    resourceVersion === undefined ? text : withMetadata(text, 'resourceVersion', resourceVersion);
  return { method: 'PUT', path, body, type: yamlType };
}

/** What is wrong with a text before the server need be asked. */
function faultsOf({ text, target }: Edit): EditOutcome | undefined {
  const read = readYaml(text);
  if (read.fault !== undefined) {
    const { message, line } = read.fault;
    return invalid('the text is no YAML', [{ field: '', reason: 'Syntax', message, line }]);
  }
  if (!isObject(read.value)) {
    const message = 'an object is expected: apiVersion, kind, metadata, …';
    return invalid(message, [{ field: '', reason: 'Syntax', message, line: 1 }]);
  }
  const wrong = identityFaults(read.value, target).map((fault) => ({
    ...fault,
    line: lineOfField(text, fault.field),
  }));
  return wrong.length === 0 ? undefined : invalid('the text is another object', wrong);
}

function identityFaults(value: JsonObject, { kind, namespace, name }: ObjectName): FailureCause[] {
  const metadata = objectOf(value, 'metadata');
  const members = [
    { field: 'apiVersion', is: textOf(value, 'apiVersion'), wanted: apiVersionOf(kind) },
    { field: 'kind', is: textOf(value, 'kind'), wanted: kind.kind },
    { field: 'metadata.name', is: textOf(metadata, 'name'), wanted: name },
    { field: 'metadata.namespace', is: textOf(metadata, 'namespace'), wanted: namespace ?? '' },
  ];
  return members
    .filter(({ field, is, wanted }) => is !== wanted && !(is === '' && isOptional(field)))
    .filter(({ field }) => name !== '' || field !== 'metadata.name')
    .map(({ field, wanted }) => ({
      field,
      reason: 'Identity',
      message: `must be ${JSON.stringify(wanted)} here`,
    }));
}

/** The URL says it too. */
function isOptional(field: string): boolean {
  return field === 'metadata.namespace';
}

function outcomeOf(error: unknown, edit: Edit): EditOutcome {
  if (!(error instanceof ApiFailure)) {
    return { kind: 'refused', code: 0, message: messageOf(error) };
  }
  const { code, message, causes } = error;
  if (code === 409 && edit.mode === 'apply') {
    const conflicts = causes.filter(({ reason }) => reason === 'FieldManagerConflict');
    if (conflicts.length > 0) return { kind: 'owned', message, conflicts };
  }
  if (code === 409 && edit.mode === 'update') return { kind: 'changed', message };
  if (code === 422) return invalid(message, placed(causes, edit.text));
  if (code === 400) return invalid(message, placed(strictFaults(message), edit.text));
  return { kind: 'refused', code, message };
}

/** The server takes an object that is gone for one that has changed. */
async function goneOr(api: Api, { target }: Edit, outcome: EditOutcome): Promise<EditOutcome> {
  try {
    await loadObject(api, target);
  } catch (error) {
    if (error instanceof ApiFailure && error.code === 404) {
      return { kind: 'refused', code: 404, message: error.message };
    }
  }
  return outcome;
}

function invalid(message: string, faults: readonly EditFault[]): EditOutcome {
  return { kind: 'invalid', message, faults };
}

function placed(causes: readonly FailureCause[], text: string): EditFault[] {
  return causes.map((cause) => ({
    ...cause,
    line: cause.field === '' ? undefined : lineOfField(text, cause.field),
  }));
}

/** The single complaints of `strict decoding error: unknown field "a.b", duplicate field "c"`. */
function strictFaults(message: string): FailureCause[] {
  const found = message.matchAll(/(unknown|duplicate) field "([^"]*)"/g);
  return [...found].map(([whole, , field = '']) => ({ field, reason: 'Strict', message: whole }));
}
